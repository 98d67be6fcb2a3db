// Messages out of, and into, the memory of a device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/bytes/byte_sizes.hpp"
#include "support/bytes/pattern.hpp"
#include "support/fake_cuda/kind_memory.hpp"
#include "support/transports/message_pair.hpp"
#include "ucx/buffer.hpp"
#include "ucx/error.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

/// Sent at once, whole, and in pieces.
constexpr std::size_t lengths[] = {1, 1000, 60'000, mib + 5};

class device_messages : public testing::Test {
 protected:
  explicit device_messages(route over, std::size_t window = 0) : pair_(options_of(over, window)) {}

  static message_pair_options options_of(route over, std::size_t window) {
    message_pair_options options;
    options.over = over;
    options.defaults.message_window = window;
    options.defaults.heartbeat_timeout = 5s;
    return options;
  }
  std::error_code outcome(request& waited) {
    EXPECT_TRUE(pair_.until([&] { return waited.done(); }));
    return waited.error();
  }
  endpoint& sender() { return *pair_.sender; }
  worker& receiver() { return pair_.receiver(); }

  const cuda_program program_;
  message_pair pair_;
};

/// Over one connection, between every two kinds of memory: a connection of UCX's takes longer than
/// all of them.
class DeviceMessage : public device_messages, public testing::WithParamInterface<route> {
 protected:
  DeviceMessage() : device_messages(GetParam()) {}

  /// Calls `check(source, target)` with the sender's kind and the receiver's.
  template <class Check>
  static void for_each_pair(Check check) {
    for (const memory_kind source : every_kind) {
      for (const memory_kind target : every_kind) {
        SCOPED_TRACE(std::string(to_string(source)) + " to " + std::string(to_string(target)));
        check(source, target);
        if (HasFatalFailure()) return;
      }
    }
  }
  /// Returns what the receiver is told that the sender's memory is.
  static memory_kind said(memory_kind source) {
    return source == memory_kind::cuda_pinned ? memory_kind::host : source;
  }
  static std::size_t copied_of(memory_kind kind, std::size_t length) {
    return is_of_driver(kind) ? length : 0;
  }
};

TEST_P(DeviceMessage, WithATagIsThereWithOneCopyOfEachByteAtEachSide) {
  for_each_pair([&](memory_kind source, memory_kind target) {
    for (const std::size_t length : lengths) {
      for (const bool is_expected : {true, false}) {
        kind_memory from(source, length, length);
        kind_memory into(target, length);
        const copied_bytes copied;
        request receive;
        if (is_expected) receive = receiver().start_receive(1, into.bytes());
        request send = sender().start_send(1, from.bytes());
        if (!is_expected) {
          ASSERT_TRUE(pair_.until([&] { return receiver().probe(1).has_value(); }));
          EXPECT_EQ(receiver().probe(1), (message_info{1, length, said(source)}));
          receive = receiver().start_receive(1, into.bytes());
        }
        ASSERT_FALSE(outcome(receive)) << receive.error().message();
        ASSERT_FALSE(outcome(send)) << send.error().message();
        EXPECT_EQ(copied.from_device(), copied_of(source, length));
        EXPECT_EQ(copied.to_device(), copied_of(target, length));
        EXPECT_TRUE(into.holds(length)) << length;
        EXPECT_EQ(receive.received(), (message_info{1, length, said(source)}));
      }
    }
  });
}

TEST_P(DeviceMessage, SaysInItsAttributesWhereItsMemoryIs) {
  for_each_pair([&](memory_kind source, memory_kind target) {
    kind_memory from(source, mib, 1);
    kind_memory into(target, mib);
    request send = sender().start_send(1, from.bytes());
    EXPECT_EQ(send.attributes().memory, said(source));
    request receive = receiver().start_receive(1, into.bytes());
    ASSERT_FALSE(outcome(receive)) << receive.error().message();
    ASSERT_FALSE(outcome(send)) << send.error().message();
    EXPECT_EQ(receive.attributes().memory, said(target));
    EXPECT_EQ(receive.attributes().size, mib);
  });
}

TEST_P(DeviceMessage, ForAHandlerIsReceivedWhereItWants) {
  for_each_pair([&](memory_kind source, memory_kind target) {
    for (const std::size_t length : lengths) {
      kind_memory from(source, length, 3);
      kind_memory into(target, length);
      std::optional<request> receive;
      std::atomic<bool> called{false};
      receiver().on_message(9, [&](message came) {
        EXPECT_EQ(came.info().memory, said(source));
        receive = came.start_receive(into.bytes());
        called = true;
      });
      request send = sender().start_send(active_message{9, pattern(40)}, from.bytes());
      ASSERT_TRUE(pair_.until([&] { return called.load(); }));
      EXPECT_FALSE(outcome(*receive));
      EXPECT_FALSE(outcome(send));
      EXPECT_TRUE(into.holds(3)) << length;
      receiver().on_message(9, {});
    }
  });
}

TEST_P(DeviceMessage, OfTheByteStreamComesInOrder) {
  endpoint back = pair_.back();
  for_each_pair([&](memory_kind source, memory_kind target) {
    for (const std::size_t length : lengths) {
      kind_memory from(source, length, length);
      kind_memory into(target, length);
      const copied_bytes copied;
      request send = sender().start_stream_send(from.bytes());
      for (std::size_t read = 0; read < length;) {
        request some = back.start_stream_receive(into.bytes().subspan(read), stream_amount::some);
        ASSERT_FALSE(outcome(some)) << some.error().message();
        read += static_cast<std::size_t>(some.received().length);
      }
      EXPECT_FALSE(outcome(send));
      EXPECT_EQ(copied.from_device(), copied_of(source, length));
      EXPECT_EQ(copied.to_device(), copied_of(target, length));
      EXPECT_TRUE(into.holds(length)) << length;
    }
  });
}

TEST_P(DeviceMessage, IsGatheredAndScatteredAmongMemoryOfTheHost) {
  for_each_pair([&](memory_kind source, memory_kind target) {
    for (const std::size_t length : {std::size_t{300}, 2 * mib}) {
      const std::vector<std::byte> whole = pattern(3 * length);
      kind_memory middle(source, length);
      middle.put(std::span(whole).subspan(length, length));
      const std::span<const std::byte> all(whole);
      const std::array<std::span<const std::byte>, 3> from{all.first(length), middle.bytes(),
                                                           all.last(length)};
      std::vector<std::byte> first(length / 2);
      kind_memory second(target, 2 * length);
      std::vector<std::byte> third(length / 2);
      const std::array<std::span<std::byte>, 3> into{first, second.bytes(), third};
      request receive = receiver().start_receive(1, into);
      request send = sender().start_send(1, from);
      ASSERT_FALSE(outcome(receive));
      ASSERT_FALSE(outcome(send));
      EXPECT_TRUE(holds_pattern(first));
      EXPECT_TRUE(holds_pattern(second.content(), 0, length / 2));
      EXPECT_TRUE(holds_pattern(third, 0, length / 2 + 2 * length));
    }
  });
}

TEST_P(DeviceMessage, LeavesItsMemoryToTheSenderWhenTheSendIsDone) {
  for_each_pair([&](memory_kind source, memory_kind target) {
    for (const std::size_t length : lengths) {
      for (const send_memory memory : {send_memory::borrowed, send_memory::copied}) {
        kind_memory from(source, length, 1);
        kind_memory into(target, length);
        request send = sender().start_send(1, from.bytes(), {.memory = memory});
        if (memory == send_memory::copied) from.fill(99);
        request receive = receiver().start_receive(1, into.bytes());
        ASSERT_FALSE(outcome(send));
        from.fill(99);
        ASSERT_FALSE(outcome(receive));
        EXPECT_TRUE(into.holds(1)) << length;
      }
    }
  });
}

TEST_P(DeviceMessage, MayBeABufferThatGoesHome) {
  for_each_pair([&](memory_kind source, memory_kind target) {
    for (const std::size_t length : lengths) {
      kind_memory from(source, length, 1);
      kind_memory into(target, length);
      std::atomic<bool> home{false};
      request send =
          sender().start_send(1, buffer(from.bytes(), [&](std::span<std::byte>) { home = true; }));
      request receive = receiver().start_receive(1, into.bytes());
      ASSERT_FALSE(outcome(receive));
      ASSERT_FALSE(outcome(send));
      EXPECT_TRUE(pair_.until([&] { return home.load(); }));
      EXPECT_TRUE(into.holds(1)) << length;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Routes, DeviceMessage,
                         testing::Values(route::tcp_by_listener, route::shared_memory),
                         [](const auto& instance) { return to_string(instance.param); });

class DeviceMessageInTrouble : public device_messages, public testing::WithParamInterface<route> {
 protected:
  DeviceMessageInTrouble() : device_messages(GetParam()) {}
};

TEST_P(DeviceMessageInTrouble, FailedCopyFailsItsSendAlone) {
  for (const std::size_t length : lengths) {
    kind_memory from(memory_kind::cuda, length, 1);
    for (const send_memory memory : {send_memory::borrowed, send_memory::copied}) {
      // A long one that is borrowed is announced, and then withdrawn.
      const bool is_announced = length > mib && memory == send_memory::borrowed;
      std::vector<std::byte> into(length);
      request receive = receiver().start_receive(1, into);
      fake_cuda_fail("copy", 0, 1, 719);
      request send = sender().start_send(1, from.bytes(), {.memory = memory});
      EXPECT_EQ(outcome(send), errc::io_error) << length;
      if (is_announced) {
        EXPECT_EQ(outcome(receive), errc::message_withdrawn);
        receive = receiver().start_receive(1, into);
      }
      send = sender().start_send(1, from.bytes(), {.memory = memory});
      EXPECT_FALSE(outcome(send)) << send.error().message();
      EXPECT_FALSE(outcome(receive)) << receive.error().message();
      EXPECT_TRUE(holds_pattern(into, 1));
    }
  }
}

TEST_P(DeviceMessageInTrouble, FailedCopyFailsItsReceiveAlone) {
  for (const std::size_t length : lengths) {
    const std::vector<std::byte> from = pattern(length, 1);
    kind_memory into(memory_kind::cuda, length);
    fake_cuda_fail("copy", 0, 1, 719);
    request receive = receiver().start_receive(1, into.bytes());
    request send = sender().start_send(1, from);
    EXPECT_EQ(outcome(receive), errc::io_error) << length;
    const std::error_code told = outcome(send);
    if (length > mib) {
      EXPECT_TRUE(!told || told == errc::message_refused) << told.message();
    } else {
      EXPECT_FALSE(told) << told.message();
    }
    EXPECT_FALSE(sender().status());
    receive = receiver().start_receive(1, into.bytes());
    send = sender().start_send(1, from);
    EXPECT_FALSE(outcome(receive)) << receive.error().message();
    EXPECT_FALSE(outcome(send));
    EXPECT_TRUE(into.holds(1)) << length;
  }
}

TEST_P(DeviceMessageInTrouble, UncopiedBytesAreTheNextReceives) {
  endpoint back = pair_.back();
  for (const std::size_t length : {std::size_t{100}, std::size_t{60'000}}) {
    kind_memory into(memory_kind::cuda, length);
    request receive = back.start_stream_receive(into.bytes(), stream_amount::all);
    fake_cuda_fail("copy", 0, 1, 719);
    sender().stream_send(pattern(length, 2));
    EXPECT_EQ(outcome(receive), errc::io_error);
    EXPECT_EQ(receive.received().length, 0U);
    receive = back.start_stream_receive(into.bytes(), stream_amount::all);
    EXPECT_FALSE(outcome(receive)) << receive.error().message();
    EXPECT_TRUE(into.holds(2));
  }
  kind_memory from(memory_kind::cuda, 1000, 3);
  fake_cuda_fail("copy", 0, 1, 719);
  request send = sender().start_stream_send(from.bytes());
  EXPECT_EQ(outcome(send), errc::io_error);
  std::vector<std::byte> next(1000);
  request receive = back.start_stream_receive(next, stream_amount::all);
  send = sender().start_stream_send(from.bytes());
  EXPECT_FALSE(outcome(send));
  EXPECT_FALSE(outcome(receive));
  EXPECT_TRUE(holds_pattern(next, 3)) << "what failed has sent nothing";
}

TEST_P(DeviceMessageInTrouble, StreamlessMemoryFailsFirst) {
  kind_memory memory(memory_kind::cuda, 2 * mib, 1);
  fake_cuda_fail("cuStreamCreate", 0, 2, 2);
  request receive = receiver().start_receive(1, memory.bytes());
  EXPECT_EQ(outcome(receive), errc::no_memory);
  request send = sender().start_send(1, memory.bytes());
  EXPECT_EQ(outcome(send), errc::no_memory);
  std::vector<std::byte> into(2 * mib);
  receive = receiver().start_receive(1, into);
  send = sender().start_send(1, memory.bytes());
  EXPECT_FALSE(outcome(receive));
  EXPECT_FALSE(outcome(send));
  EXPECT_TRUE(holds_pattern(into, 1));
}

TEST_P(DeviceMessageInTrouble, FreedMemoryFailsItsOperationAlone) {
  const auto freed = cuda_program::allocate(2 * mib);
  request send = sender().start_send(1, freed);
  ASSERT_TRUE(pair_.until([&] { return receiver().probe(1).has_value(); }));
  cuda_program::free(freed);
  std::vector<std::byte> into(2 * mib);
  request receive = receiver().start_receive(1, into);
  EXPECT_EQ(outcome(receive), errc::message_withdrawn);
  EXPECT_EQ(outcome(send), errc::io_error);

  const auto gone = cuda_program::allocate(1000);
  receive = receiver().start_receive(2, gone);
  cuda_program::free(gone);
  sender().send(2, pattern(1000));
  EXPECT_EQ(outcome(receive), errc::io_error);
  EXPECT_FALSE(sender().status());
}

TEST_P(DeviceMessageInTrouble, TruncatedOneTouchesNothing) {
  for (const std::size_t length : {std::size_t{1000}, 2 * mib}) {
    kind_memory from(memory_kind::cuda, length, 1);
    kind_memory into(memory_kind::cuda, length - 1, 7);
    request receive = receiver().start_receive(1, into.bytes());
    request send = sender().start_send(1, from.bytes());
    EXPECT_EQ(outcome(receive), errc::message_truncated);
    EXPECT_EQ(receive.received().length, length);
    EXPECT_EQ(outcome(send) == errc::message_truncated, length > mib);
    EXPECT_TRUE(into.holds(7));
  }
}

TEST_P(DeviceMessageInTrouble, CanceledOnesTouchMemoryNoMore) {
  kind_memory into(memory_kind::cuda, mib, 7);
  request receive = receiver().start_receive(1, into.bytes());
  receive.cancel();
  EXPECT_EQ(outcome(receive), errc::canceled);
  receive = receiver().start_receive(1, into.bytes(), {.timeout = 20ms});
  EXPECT_EQ(outcome(receive), errc::timed_out);
  kind_memory from(memory_kind::cuda, 2 * mib, 1);
  request send = sender().start_send(1, from.bytes(), {.timeout = 20ms});
  EXPECT_EQ(outcome(send), errc::timed_out);
  send = sender().start_send(2, from.bytes());
  send.cancel();
  EXPECT_EQ(outcome(send), errc::canceled);
  EXPECT_TRUE(into.holds(7));
  EXPECT_FALSE(sender().status());
}

TEST_P(DeviceMessageInTrouble, PeerThatLeavesEndsItAsAnyMessage) {
  endpoint back = pair_.back();
  kind_memory memory(memory_kind::cuda, 2 * mib, 1);
  request send = sender().start_send(1, memory.bytes());
  request receive = sender().start_receive(2, memory.bytes());
  std::error_code ec;
  back.close(close_mode::abort, ec);
  for (request* each : {&send, &receive}) {
    const std::error_code how = outcome(*each);
    EXPECT_TRUE(how == errc::connection_reset || how == errc::closed_by_peer) << how.message();
  }
}

TEST_P(DeviceMessageInTrouble, HeadersAreTheHosts) {
  kind_memory header(memory_kind::cuda, 20, 1);
  request send = sender().start_send(active_message{1, header.bytes()}, pattern(10));
  EXPECT_EQ(outcome(send), errc::invalid_argument);
  std::error_code ec;
  sender().post_send(active_message{1, header.bytes()}, pattern(10), 7, {}, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  try {
    sender().send(active_message{1, header.bytes()}, pattern(10));
    FAIL() << "a header of a device's was sent";
  } catch (const error& failed) {
    EXPECT_THAT(failed.what(), testing::HasSubstr("whose header is in a device's memory"));
  }
}

TEST_P(DeviceMessageInTrouble, FailedPostsReturnTheirKeys) {
  kind_memory from(memory_kind::cuda, 1000, 1);
  std::atomic<int> failed{0};
  message_handlers handlers;
  handlers.on_sent = [&](std::uint64_t key, std::error_code how) {
    EXPECT_EQ(key, 7U);
    EXPECT_EQ(how, errc::io_error);
    ++failed;
  };
  sender().set_message_handlers(std::move(handlers));
  fake_cuda_fail("copy", 0, 1, 719);
  std::error_code ec;
  sender().post_send(1, from.bytes(), 7, {}, ec);
  EXPECT_FALSE(ec);
  EXPECT_TRUE(pair_.until([&] { return failed == 1; }));
}

INSTANTIATE_TEST_SUITE_P(Routes, DeviceMessageInTrouble,
                         testing::Values(route::tcp_by_listener, route::shared_memory),
                         [](const auto& instance) { return to_string(instance.param); });

/// With little room.
class DeviceMessageRoom : public device_messages {
 protected:
  DeviceMessageRoom() : device_messages(route::tcp_by_listener, 64U << 10U) {}
};

TEST_F(DeviceMessageRoom, WaitsForRoomUncopied) {
  kind_memory from(memory_kind::cuda, 10'000, 1);
  const copied_bytes copied;
  std::vector<request> sends;
  for (int i = 0; i < 20; ++i) sends.push_back(sender().start_send(1, from.bytes()));
  EXPECT_LE(copied.from_device(), 64U << 10U);
  EXPECT_EQ(sender().start_send(1, from.bytes(), {.backpressure = backpressure::fail}).error(),
            errc::would_block);
  for (request& each : sends) {
    kind_memory into(memory_kind::cuda, 10'000);
    request receive = receiver().start_receive(1, into.bytes());
    ASSERT_FALSE(outcome(receive));
    EXPECT_FALSE(outcome(each));
    EXPECT_TRUE(into.holds(1));
  }
}

TEST_F(DeviceMessageRoom, LongOnesTakeFewPiecesOfTheHost) {
  kind_memory from(memory_kind::cuda, 32 * mib, 1);
  kind_memory into(memory_kind::cuda, 32 * mib);
  request receive = receiver().start_receive(1, into.bytes());
  request send = sender().start_send(1, from.bytes());
  ASSERT_FALSE(outcome(receive));
  ASSERT_FALSE(outcome(send));
  EXPECT_TRUE(into.holds(1));
}

TEST(DeviceMessageOfTwoDevices, IsGatheredFromBoth) {
  const cuda_program program;
  message_pair_options options;
  options.over = route::tcp_by_listener;
  message_pair pair(options);
  kind_memory first(memory_kind::cuda, 1000, 1);
  cuda_program::use(1);
  kind_memory second(memory_kind::cuda, 1000, 2);
  kind_memory into(memory_kind::cuda, 2000);
  const std::array<std::span<const std::byte>, 2> from{first.bytes(), second.bytes()};
  request receive = pair.receiver().start_receive(1, into.bytes());
  request send = pair.sender->start_send(1, from);
  send.wait();
  receive.wait();
  const std::vector<std::byte> came = into.content();
  EXPECT_TRUE(holds_pattern(std::span(came).first(1000), 1));
  EXPECT_TRUE(holds_pattern(std::span(came).last(1000), 2));
}

TEST(MessageWithoutADriver, SaysOfItsMemoryWhatTheSenderSays) {
  fake_cuda_reset(0, 0);
  message_pair_options options;
  options.over = route::tcp_by_listener;
  message_pair pair(options);
  for (const std::size_t length : {std::size_t{10}, 2 * mib}) {
    const std::vector<std::byte> from = pattern(length);
    request send = pair.sender->start_send(1, from, {.kind = memory_kind::rocm});
    EXPECT_EQ(pair.take(1).info().memory, memory_kind::rocm);
    EXPECT_TRUE(pair.until([&] { return send.done(); }));
  }
}

}  // namespace
}  // namespace ucx::test
