// Messages that are received into memory of the sender's kind.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <memory_resource>
#include <optional>
#include <system_error>
#include <utility>

#include "support/bytes/byte_sizes.hpp"
#include "support/bytes/pattern.hpp"
#include "support/fake_cuda/kind_memory.hpp"
#include "support/transports/message_pair.hpp"
#include "ucx/buffer.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_place.hpp"
#include "ucx/memory_resources.hpp"

namespace ucx::test {
namespace {

constexpr std::size_t lengths[] = {1, 1000, 60'000, 2 * mib};

class DeviceAllocation : public testing::Test {
 protected:
  static message_pair_options over_tcp() {
    message_pair_options options;
    options.over = route::tcp_by_listener;
    return options;
  }
  std::error_code outcome(request& waited) {
    EXPECT_TRUE(pair_.until([&] { return waited.done(); }));
    return waited.error();
  }
  /// Sends `from`, and receives it as `receive` says of the message; both end well.
  template <class Receive>
  void pass(kind_memory& from, Receive receive) {
    request send = pair_.sender->start_send(1, from.bytes());
    message came = pair_.take(1);
    request receiving = receive(came);
    EXPECT_FALSE(outcome(receiving)) << receiving.error().message();
    EXPECT_FALSE(outcome(send)) << send.error().message();
  }

  const cuda_program program_;
  message_pair pair_{over_tcp()};
};

TEST_F(DeviceAllocation, IsOfTheSendersKindAndGoesBackWithTheBuffer) {
  memory_pool device({memory_kind::cuda, 0});
  memory_pool managed({memory_kind::cuda_managed, 0});
  memory_pool pinned({memory_kind::cuda_pinned, 0});
  memory_resources known;
  known.add(memory_kind::cuda, device);
  known.add(memory_kind::cuda_managed, managed);
  known.add(memory_kind::host, pinned);
  for (const memory_kind kind : every_kind) {
    for (const std::size_t length : lengths) {
      kind_memory from(kind, length, 4);
      buffer made;
      const copied_bytes copied;
      pass(from, [&](message& came) {
        return came.start_receive({made, known, length, missing_resource::strict});
      });
      EXPECT_EQ(made.size(), length);
      const memory_kind wanted = is_of_driver(kind) ? kind : memory_kind::cuda_pinned;
      EXPECT_EQ(place_of(made.data()).kind, wanted);
      EXPECT_EQ(copied.to_device(), is_of_driver(kind) ? length : 0);
      EXPECT_TRUE(holds_pattern(cuda_program::content(made.bytes()), 4));
    }
  }
  for (const memory_pool* each : {&device, &managed, &pinned}) {
    EXPECT_EQ(each->usage().in_use, 0U);
  }
}

TEST_F(DeviceAllocation, FallsBackToTheHostsOrIsRefused) {
  const memory_resources known;
  kind_memory from(memory_kind::cuda, 2 * mib, 4);
  buffer made;
  pass(from, [&](message& came) { return came.start_receive({made, known, 2 * mib}); });
  EXPECT_EQ(place_of(made.data()).kind, memory_kind::host);
  EXPECT_TRUE(holds_pattern(made.bytes(), 4));

  made = buffer();
  request send = pair_.sender->start_send(1, from.bytes());
  std::optional<message> came = pair_.take(1);
  request receive = came->start_receive({made, known, 2 * mib, missing_resource::strict});
  EXPECT_EQ(receive.error(), errc::not_supported);
  EXPECT_FALSE(made);
  // Nothing was started: the program may still choose something else.
  kind_memory into(memory_kind::cuda, 2 * mib);
  receive = came->start_receive(into.bytes());
  EXPECT_FALSE(outcome(receive));
  EXPECT_FALSE(outcome(send));
  EXPECT_TRUE(into.holds(4));

  send = pair_.sender->start_send(1, from.bytes());
  came = pair_.take(1);
  EXPECT_EQ(came->start_receive({made, known, 2 * mib, missing_resource::strict}).error(),
            errc::not_supported);
  came.reset();
  EXPECT_EQ(outcome(send), errc::message_refused);
}

TEST_F(DeviceAllocation, ThatFailsStartsNothing) {
  memory_pool small({memory_kind::cuda, 0}, {.max_size = mib});
  memory_resources known;
  known.add(memory_kind::cuda, small);
  kind_memory from(memory_kind::cuda, 2 * mib, 4);
  buffer made;
  request send = pair_.sender->start_send(1, from.bytes());
  message came = pair_.take(1);
  EXPECT_EQ(came.start_receive({made, known, 2 * mib}).error(), errc::no_memory);
  EXPECT_FALSE(made);
  kind_memory into(memory_kind::cuda, 2 * mib);
  request receive = came.start_receive(into.bytes());
  EXPECT_FALSE(outcome(receive));
  EXPECT_FALSE(outcome(send));
  EXPECT_TRUE(into.holds(4));
}

TEST_F(DeviceAllocation, OfMoreThanWantedIsTruncated) {
  memory_pool device({memory_kind::cuda, 0});
  memory_resources known;
  known.add(memory_kind::cuda, device);
  kind_memory from(memory_kind::cuda, 2 * mib, 4);
  buffer made;
  request send = pair_.sender->start_send(1, from.bytes());
  message came = pair_.take(1);
  request receive = came.start_receive({made, known, 2 * mib - 1});
  EXPECT_EQ(outcome(receive), errc::message_truncated);
  EXPECT_EQ(outcome(send), errc::message_truncated);
  EXPECT_EQ(device.usage().in_use, 0U);
  message none;
  EXPECT_EQ(none.start_receive({made, known, 1}).error(), errc::invalid_argument);
}

TEST_F(DeviceAllocation, OfAKindThatNobodyCopiesToCountsAsMissing) {
  std::pmr::monotonic_buffer_resource unreachable;
  memory_resources known;
  known.add(memory_kind::rocm, unreachable);
  const std::vector<std::byte> from = pattern(1000);
  for (const missing_resource missing : {missing_resource::fallback, missing_resource::strict}) {
    request send = pair_.sender->start_send(1, from, {.kind = memory_kind::rocm});
    message came = pair_.take(1);
    buffer made;
    request receive = came.start_receive({made, known, 1000, missing});
    const bool falls_back = missing == missing_resource::fallback;
    EXPECT_EQ(outcome(receive), falls_back ? std::error_code() : errc::not_supported);
    EXPECT_EQ(made.size(), falls_back ? 1000U : 0U);
    EXPECT_FALSE(outcome(send));
  }
}

}  // namespace
}  // namespace ucx::test
