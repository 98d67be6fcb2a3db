// Windows to the caller's memory, between two simulated processes.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/rpc.hpp"

namespace ucx::calls {
namespace {

using namespace std::chrono_literals;
using bytes = std::vector<std::byte>;
using to_read = window<access::read>;
using to_fill = window<access::write>;

/// Accesses that the owner sees, and refuses by itself.
const remote_region_options by_message{.transfer_method = transfer_method::message};

class CallWindow : public ::testing::Test {
 protected:
  CallWindow() {
    calls_.add("copy", [this](call_context& call, to_read from) { return copy(call, from); });
    calls_.add("fill", [](call_context& call, to_fill into, std::uint8_t number) {
      return fill(call, into, number);
    });
    calls_.add("keep", [this](call_context& call, to_read from) {
      kept_.emplace(from.open(*call.peer, by_message));
      kept_descriptor_ = from.descriptor();
    });
    calls_.add("wait", [this](call_context& call, to_read from) {
      kept_.emplace(from.open(*call.peer, by_message));
      waiting_ = call.defer();
    });
  }
  ~CallWindow() override { waiting_ = late_answer(); }

  call_task<std::uint64_t> copy(call_context& call, to_read from) {
    copied_.assign(from.size(), std::byte{});
    remote_region there = from.open(*call.peer);
    if (from.size() > 0) co_await there.start_read_at(0, copied_);
    co_return from.size();
  }
  static call_task<void> fill(call_context& call, to_fill into, std::uint8_t number) {
    const bytes filling(into.size(), std::byte{number});
    remote_region there = into.open(*call.peer);
    co_await there.start_write_at(0, filling);
    co_await there.start_flush();
  }

  void serve(call_server_options options = {}) {
    serves_ = call_server(both_.receiver(), calls_, std::move(options));
  }
  bool until(const std::function<bool()>& done) { return both_.network().run_until(done); }
  /// Returns the outcome of reading a byte of what a function has kept.
  std::error_code read_kept() {
    std::byte one{};
    request reading = kept_->start_read_at(0, std::span(&one, 1));
    EXPECT_TRUE(until([&] { return reading.done(); }));
    return reading.error();
  }

  test::simulated_messages both_;
  bytes copied_;
  std::optional<remote_region> kept_;
  remote_descriptor kept_descriptor_;
  late_answer waiting_;
  call_table calls_;
  call_server serves_;
  call_channel peer_{both_.sender};
};

TEST_F(CallWindow, IsReadByTheCallee) {
  serve();
  for (const std::size_t size : {0U, 1U, 5000U, 3'000'000U}) {
    const bytes memory = test::pattern(size, 1);
    EXPECT_EQ(peer_.call<std::uint64_t>("copy", to_read(memory)), size);
    EXPECT_TRUE(copied_ == memory) << size;
  }
  EXPECT_EQ(peer_.under_way(), 0U);
  EXPECT_EQ(serves_.under_way(), 0U);
}

TEST_F(CallWindow, IsFilledByTheCallee) {
  serve();
  const call_stub<void(to_fill, std::uint8_t)> fill(peer_, "fill");
  bytes memory(100'000);
  fill(std::span(memory), 7);
  EXPECT_TRUE(memory == bytes(100'000, std::byte{7}));
}

TEST_F(CallWindow, IsClosedWithTheCallWhereTheCalleeKeepsIt) {
  serve();
  const bytes memory = test::pattern(1000, 1);
  peer_.call<void>("keep", to_read(memory));
  ASSERT_TRUE(kept_);
  EXPECT_EQ(read_kept(), errc::revoked);
  // Another handle is of no use either.
  const endpoint caller = both_.back();
  kept_.emplace(caller, kept_descriptor_, by_message);
  EXPECT_EQ(read_kept(), errc::revoked);
}

TEST_F(CallWindow, IsOpenWhileTheCallIsUnderWay) {
  serve();
  bytes memory = test::pattern(1000, 1);
  auto asked = peer_.start_call<void>("wait", to_read(memory));
  ASSERT_TRUE(until([&] { return kept_.has_value(); }));
  EXPECT_FALSE(read_kept());
  asked.cancel();
  EXPECT_TRUE(until([&] { return asked.done(); }));
  EXPECT_EQ(asked.error(), errc::canceled);
  EXPECT_EQ(read_kept(), errc::revoked);
}

TEST_F(CallWindow, IsClosedAtTheDeadline) {
  serve();
  const bytes memory = test::pattern(1000, 1);
  auto asked = peer_.start_call<void>(call_options{.timeout = 10ms}, "wait", to_read(memory));
  EXPECT_TRUE(until([&] { return asked.done(); }));
  EXPECT_EQ(asked.error(), errc::timed_out);
  ASSERT_TRUE(kept_);
  EXPECT_EQ(read_kept(), errc::revoked);
}

TEST_F(CallWindow, IsClosedToARequestThatIsDestroyed) {
  serve();
  bytes memory = test::pattern(3'000'000, 1);
  bytes into(memory.size());
  request reading;
  {
    const auto asked = peer_.start_call<void>("wait", to_read(memory));
    ASSERT_TRUE(until([&] { return kept_.has_value(); }));
    reading = kept_->start_read_at(0, into);
    both_.settle(10us);
  }
  // Nothing is read from here on.
  memory.assign(memory.size(), std::byte{0xee});
  EXPECT_TRUE(until([&] { return reading.done(); }));
  if (!reading.error()) {
    EXPECT_TRUE(into == test::pattern(3'000'000, 1));
  }
  EXPECT_EQ(read_kept(), errc::revoked);
}

TEST_F(CallWindow, IsGivenBackInsideAHandler) {
  serve();
  const bytes none;
  bytes memory = test::pattern(3'000'000, 1);
  bytes into(memory.size());
  std::optional asked(peer_.start_call<void>("wait", to_read(memory)));
  ASSERT_TRUE(until([&] { return kept_.has_value(); }));
  request reading = kept_->start_read_at(0, into);
  both_.settle(10us);
  auto other = peer_.start_call<std::uint64_t>("copy", to_read(none));
  other.then([&](std::error_code) {
    asked.reset();
    memory.assign(memory.size(), std::byte{0xee});  // nothing is read from here on
  });
  EXPECT_TRUE(until([&] { return !asked && reading.done(); }));
  if (reading.error()) {
    EXPECT_EQ(reading.error(), errc::revoked);
  } else {
    EXPECT_TRUE(into == test::pattern(3'000'000, 1));
  }
  EXPECT_EQ(peer_.call<std::uint64_t>("copy", to_read(none)), 0U) << "the connection lives on";
}

TEST_F(CallWindow, GivesTheMemoryBackWhereTheCalleeStopsInTheMiddle) {
  serve();
  const bytes memory = test::pattern(3'000'000, 1);
  bytes into(memory.size());
  auto asked = peer_.start_call<void>("wait", to_read(memory));
  ASSERT_TRUE(until([&] { return kept_.has_value(); }));
  request reading = kept_->start_read_at(0, into);
  both_.settle(10us);
  both_.pair.owner_process.stop();
  asked.cancel();
  EXPECT_TRUE(until([&] { return asked.done(); }));
  EXPECT_EQ(asked.error(), errc::canceled);
  both_.pair.owner_process.resume();
  EXPECT_TRUE(until([&] { return reading.done(); }));
  EXPECT_TRUE(reading.error());
}

TEST_F(CallWindow, GivesTheMemoryBackWhereTheCalleeHardlyTakesAny) {
  serve();
  const bytes memory = test::pattern(3'000'000, 1);
  bytes into(memory.size());
  auto asked = peer_.start_call<void>("wait", to_read(memory));
  ASSERT_TRUE(until([&] { return kept_.has_value(); }));
  request reading = kept_->start_read_at(0, into);
  both_.settle(10us);
  both_.network().link().bytes_per_second = 2000;
  asked.cancel();
  EXPECT_TRUE(until([&] { return asked.done(); })) << "within the time of two heartbeats";
  EXPECT_EQ(asked.error(), errc::canceled);
  both_.network().link().bytes_per_second = 5e9;
  EXPECT_TRUE(until([&] { return reading.done(); }));
}

TEST_F(CallWindow, IsNoMemoryOfTheCallee) {
  serve();
  const call_function fill("fill", "(window:w,u8)->nil");
  bytes memory(100);
  const memory_region own(both_.pair.owner_context, memory, access::write);
  call_writer arguments;
  arguments.bytes(own.descriptor().encode()).unsigned_integer(1);
  call_request asked = peer_.start_dynamic_call(fill, arguments);
  EXPECT_TRUE(until([&] { return asked.done(); }));
  EXPECT_EQ(asked.error(), errc::call_failed);
  EXPECT_TRUE(asked.cause());
  EXPECT_TRUE(memory == bytes(100)) << "a caller's word does not make the callee write to its own";
}

TEST_F(CallWindow, IsOfOneConnection) {
  serve();
  calls_.add("hold", [this](call_context& call, to_read from) {
    kept_descriptor_ = from.descriptor();
    waiting_ = call.defer();
  });
  const bytes memory = test::pattern(1000, 1);
  auto asked = peer_.start_call<void>("hold", to_read(memory));
  ASSERT_TRUE(until([&] { return static_cast<bool>(waiting_); }));
  endpoint second = both_.pair.connect();
  second.wait_connected();
  second.send(0xbac, {}, {.until = send_until::reusable});
  const endpoint other = both_.take(0xbac).peer();
  kept_.emplace(other, kept_descriptor_, by_message);
  EXPECT_EQ(read_kept(), errc::no_such_region);
  waiting_.send(call_writer().nil());
  EXPECT_TRUE(until([&] { return asked.done(); }));
  EXPECT_FALSE(asked.error());
}

TEST_F(CallWindow, GivesTheMemoryBackWhereTheCalleeDies) {
  serve();
  bytes memory = test::pattern(1000, 1);
  auto asked = peer_.start_call<void>("wait", to_read(memory));
  ASSERT_TRUE(until([&] { return kept_.has_value(); }));
  both_.pair.owner_process.kill();
  EXPECT_TRUE(until([&] { return asked.done(); }));
  EXPECT_EQ(asked.error(), errc::call_outcome_unknown);
  kept_.reset();
}

TEST_F(CallWindow, HasTheRightsOfItsSignature) {
  serve();
  const call_function fill("fill", "(window:w,u8)->nil");
  bytes memory(100);
  call_writer wrong;
  wrong.window(memory, access::read).unsigned_integer(1);
  call_request asked = peer_.start_dynamic_call(fill, wrong);
  EXPECT_TRUE(until([&] { return asked.done(); }));
  EXPECT_EQ(asked.error(), errc::protocol_error);
  call_writer none;
  none.bytes(test::pattern(100, 1)).unsigned_integer(1);
  asked = peer_.start_dynamic_call(fill, none);
  EXPECT_TRUE(until([&] { return asked.done(); }));
  EXPECT_EQ(asked.error(), errc::protocol_error) << "it is no descriptor";
  auto other = peer_.start_call<void>("fill", to_read(memory), std::uint8_t{1});
  EXPECT_TRUE(until([&] { return other.done(); }));
  EXPECT_EQ(other.error(), errc::signature_differs);
  EXPECT_TRUE(memory == bytes(100));
}

TEST_F(CallWindow, IsRefusedWhereItsBytesAreDamaged) {
  serve();
  const call_function fill("fill", "(window:w,u8)->nil");
  bytes memory(100);
  const memory_region exposed(both_.pair.reader_context, memory, access::write);
  const bytes intact = exposed.descriptor().encode();
  const auto outcome_of = [&](const bytes& sent) {
    call_writer arguments;
    arguments.bytes(sent).unsigned_integer(1);
    call_request asked = peer_.start_dynamic_call(fill, arguments);
    EXPECT_TRUE(until([&] { return asked.done(); }));
    return asked.error();
  };
  for (std::size_t at = 0; at < intact.size(); at += 7) {
    bytes damaged = intact;
    damaged[at] ^= std::byte{1};
    EXPECT_EQ(outcome_of(damaged), errc::protocol_error) << at;
    EXPECT_EQ(outcome_of({intact.begin(), intact.begin() + static_cast<std::ptrdiff_t>(at)}),
              errc::protocol_error)
        << at;
  }
  EXPECT_EQ(outcome_of(bytes(10'000)), errc::protocol_error);
  EXPECT_TRUE(memory == bytes(100));
  EXPECT_FALSE(outcome_of(intact)) << "any region of the caller's will do";
  EXPECT_TRUE(memory == bytes(100, std::byte{1}));
}

TEST_F(CallWindow, IsAnArgumentOfAnAnsweredCall) {
  serve();
  bytes memory(10);
  std::error_code ec;
  const call_function nine("nine", "()->nil");
  call_writer many;
  for (int i = 0; i < 9; ++i) many.window(memory, access::read);
  EXPECT_EQ(peer_.start_dynamic_call(nine, many).error(), errc::invalid_argument);
  call_writer within;
  within.list(1).window(memory, access::read);
  EXPECT_EQ(peer_.start_dynamic_call(nine, within).error(), errc::invalid_argument);
  call_writer null;
  null.window(std::span(static_cast<std::byte*>(nullptr), 5), access::read);
  EXPECT_EQ(peer_.start_dynamic_call(nine, null).error(), errc::invalid_argument);
  call_writer posted;
  posted.window(memory, access::read);
  peer_.post_dynamic_call(nine, posted, ec);
  EXPECT_EQ(ec, errc::invalid_argument) << "nothing would tell when it is over";
  nine.encode(posted, ec);
  EXPECT_EQ(ec, errc::invalid_argument) << "without a connection";
  call_writer full;
  full.bytes(bytes(call_writer::max_size - 10)).window(memory, access::read);
  EXPECT_EQ(peer_.start_dynamic_call(nine, full).error(), errc::no_space);
  EXPECT_EQ(peer_.under_way(), 0U);
}

TEST_F(CallWindow, IsClosedWithTheConnection) {
  serve();
  const bytes memory = test::pattern(1000, 1);
  auto asked = peer_.start_call<void>("wait", to_read(memory));
  ASSERT_TRUE(until([&] { return kept_.has_value(); }));
  request closing = both_.sender.start_close();
  EXPECT_TRUE(until([&] { return closing.done() && asked.done(); }));
  EXPECT_FALSE(closing.error());
  EXPECT_EQ(asked.error(), errc::canceled);
  EXPECT_TRUE(read_kept());
}

}  // namespace
}  // namespace ucx::calls
