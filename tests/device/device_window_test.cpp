// Windows of calls to memory of a device.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/fake_cuda/kind_memory.hpp"
#include "support/transports/message_pair.hpp"
#include "ucx/rpc.hpp"

namespace ucx::test {
namespace {

/// Writes what it reads.
call_task<std::uint64_t> copy_between(call_context& call, window<access::read> from,
                                      window<access::write> into) {
  std::vector<std::byte> here(from.size());
  remote_region source = from.open(*call.peer);
  co_await source.start_read_at(0, here);
  remote_region target = into.open(*call.peer);
  co_await target.start_write_at(0, here);
  co_await target.start_flush();
  co_return here.size();
}

class DeviceWindow : public testing::TestWithParam<memory_kind> {
 protected:
  DeviceWindow() { calls_.add("copy", copy_between); }

  const cuda_program program_;
  message_pair both_{message_pair_options{}};
  call_table calls_;
  call_server serves_{both_.receiver(), calls_};
  call_channel peer_{*both_.sender};
};

TEST_P(DeviceWindow, IsReadAndFilled) {
  for (const std::size_t size : {1U, 60'000U, 1'000'000U}) {
    kind_memory into(GetParam(), size);
    kind_memory source(GetParam(), size, size);
    auto asked = peer_.start_call<std::uint64_t>("copy", window<access::read>(source.bytes()),
                                                 window<access::write>(into.bytes()));
    ASSERT_TRUE(both_.until([&] { return asked.done(); }));
    ASSERT_FALSE(asked.error()) << asked.description();
    EXPECT_EQ(asked.result(), size);
    EXPECT_TRUE(into.holds(size)) << size;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, DeviceWindow, testing::ValuesIn(every_kind), name_of_kind);

}  // namespace
}  // namespace ucx::test
