// Messages and pipes between memory of every two kinds.
#include <gtest/gtest.h>

#include <cstddef>
#include <future>
#include <string>
#include <system_error>
#include <tuple>

#include "gpu/gpu_memory.hpp"
#include "support/streams/pipe_place.hpp"
#include "support/transports/message_pair.hpp"
#include "ucx/error.hpp"

namespace ucx::test {
namespace {

using kinds = std::tuple<memory_kind, memory_kind>;

std::string name_of_kinds(const testing::TestParamInfo<kinds>& chosen) {
  return std::string(to_string(std::get<0>(chosen.param))) + "_to_" +
         std::string(to_string(std::get<1>(chosen.param)));
}

/// From the first kind into the second.
class GpuMessage : public testing::TestWithParam<kinds> {
 protected:
  static memory_kind from() { return std::get<0>(GetParam()); }
  static memory_kind into() { return std::get<1>(GetParam()); }
};

message_pair_options over_tcp() {
  message_pair_options options;
  options.over = route::tcp_by_listener;
  return options;
}

TEST_P(GpuMessage, ComesWholeWhateverItsLength) {
  message_pair pair(over_tcp());
  for (const std::size_t length : {1U, 1000U, 60'000U, 5'000'003U}) {
    const buffer sent = filled(from(), length, length);
    buffer received(pool_of(into()), length);
    request receive = pair.receiver().start_receive(1, received.bytes());
    request send = pair.sender->start_send(1, sent.bytes());
    ASSERT_TRUE(pair.until([&] { return receive.done() && send.done(); }));
    EXPECT_FALSE(send.error()) << send.error().message();
    EXPECT_FALSE(receive.error()) << receive.error().message();
    EXPECT_TRUE(holds(received.bytes(), length)) << length;
  }
}

class GpuPipe : public pipe_place, public testing::WithParamInterface<kinds> {};

TEST_P(GpuPipe, CarriesMemoryBetweenText) {
  constexpr std::size_t size = 5'000'003;
  connect();
  const buffer sent = filled(std::get<0>(GetParam()), 3, size);
  buffer received(pool_of(std::get<1>(GetParam())), size);
  auto writing = std::async(std::launch::async, [&] {
    *out_ << "head\n";
    out_->write(reinterpret_cast<const char*>(sent.data()), size);
    *out_ << "tail\n" << std::flush;
  });
  std::string line;
  std::getline(*in_, line);
  EXPECT_EQ(line, "head");
  in_->read(reinterpret_cast<char*>(received.data()), size);
  std::getline(*in_, line);
  EXPECT_EQ(line, "tail");
  writing.get();
  ASSERT_TRUE(*in_) << in_->error_message();
  ASSERT_TRUE(*out_) << out_->error_message();
  EXPECT_TRUE(holds(received.bytes(), 3));
}

INSTANTIATE_TEST_SUITE_P(Each, GpuMessage,
                         testing::Combine(testing::ValuesIn(gpu_kinds),
                                          testing::ValuesIn(gpu_kinds)),
                         name_of_kinds);
INSTANTIATE_TEST_SUITE_P(Each, GpuPipe,
                         testing::Combine(testing::ValuesIn(gpu_kinds),
                                          testing::ValuesIn(gpu_kinds)),
                         name_of_kinds);

}  // namespace
}  // namespace ucx::test
