// Operations of every kind, given up at every moment of their lives: by hand, and by their
// deadline. Each ends once, and what comes behind it finds the connection as it was.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/basics/effort.hpp"
#include "support/replaced/shortage.hpp"
#include "support/simulated/served_region.hpp"
#include "support/simulated/simulated_address.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "ucx/buffer.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/receive_target.hpp"
#include "ucx/remote_atomic.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t large = std::size_t{600} << 10U;
constexpr std::size_t with_table = large + 100;  // of the lengths of a message's parts
constexpr std::chrono::nanoseconds step = 13us;
constexpr int most_moments = 40;

/// One test's sides: what is started on them, and how often each of it ended.
class attempt {
 public:
  explicit attempt(const simulated_pair_options& options)
      : both(options),
        exposed(both.pair.owner_context, std::span<std::byte>(memory), access::read_write),
        region(both.sender, exposed.descriptor()) {
    both.pair.owner_process.let_sources_change();
    both.settle();
  }
  ~attempt() { both.receiver().on_message(7, {}); }
  attempt(const attempt&) = delete;
  attempt& operator=(const attempt&) = delete;

  /// Keeps an operation that ends by itself, or because of the other one.
  void beside(request started) {
    const std::size_t which = all_.size();
    all_.push_back(std::move(started));
    ends_.push_back(0);
    all_.back().then([this, which](std::error_code) { ++ends_[which]; });
  }
  /// Keeps the one that is given up.
  void victim(request started) {
    victim_ = all_.size();
    beside(std::move(started));
  }

  /// The connection at the receiver.
  endpoint& back() {
    if (!back_) back_.emplace(both.back());
    return *back_;
  }

  void cancel() {
    if (victim_) all_[*victim_].cancel();
  }
  /// Waits for everything, and returns how the one that was given up ended.
  std::error_code outcome(const std::string& where) {
    for (request& each : all_) {
      std::error_code ec;
      each.wait(ec);
      const bool usual = !ec || ec == errc::canceled || ec == errc::timed_out ||
                         ec == errc::message_withdrawn || ec == errc::message_refused ||
                         ec == errc::connection_reset || ec == errc::closed;
      EXPECT_TRUE(usual) << where << ": " << ec.message();
    }
    both.settle();
    for (const int each : ends_) EXPECT_EQ(each, 1) << where;
    return victim_ ? all_[*victim_].error() : std::error_code();
  }

  simulated_messages both;
  std::vector<std::byte> memory = pattern(large);
  memory_region exposed;
  remote_region region;
  // What operations refer to.
  const std::vector<std::byte> bytes = pattern(large, 1);
  std::vector<std::byte> into = blank(large);
  std::vector<std::byte> owned = blank(large);
  const std::array<std::span<const std::byte>, 3> parts{std::span(bytes).first(100),
                                                        std::span(bytes).subspan(100, large / 2),
                                                        std::span(bytes).subspan(100 + large / 2)};
  message_parts apart;
  buffer made;
  buffer_pool pool{{.size = large, .count = 2}};
  notification heard;
  std::uint64_t number = 0;

 private:
  std::optional<endpoint> back_;
  std::deque<request> all_;
  std::deque<int> ends_;
  std::optional<std::size_t> victim_;
};

struct kind {
  const char* name;
  std::function<void(attempt&, std::chrono::nanoseconds timeout)> start;
  /// Where giving up leaves bytes that nobody could tell from others, the connection goes.
  bool may_lose = false;
  /// Where memory is shared it ends within the call that starts it.
  bool ends_at_once_on_one_host = false;
};

void PrintTo(const kind& printed, std::ostream* out) { *out << printed.name; }

/// What a handler does with a message of the sender's.
void receive_by_handler(attempt& on, bool is_victim, std::chrono::nanoseconds timeout) {
  on.both.receiver().on_message(7, [&on, is_victim, timeout](message came) {
    request receive = came.start_receive(on.into, {.timeout = timeout});
    is_victim ? on.victim(std::move(receive)) : on.beside(std::move(receive));
  });
}

std::array<read_piece, 3> reads(attempt& on) {
  const std::span<std::byte> into(on.into);
  return {read_piece{0, into.first(100)}, read_piece{1000, into.subspan(1000, large / 2)},
          read_piece{large / 2 + 5000, into.last(1000)}};
}

std::array<write_piece, 3> writes(attempt& on) {
  const std::span<const std::byte> from(on.bytes);
  return {write_piece{0, from.first(100)}, write_piece{1000, from.subspan(1000, large / 2)},
          write_piece{large / 2 + 5000, from.last(1000)}};
}

std::vector<kind> kinds_of_messages() {
  using nanoseconds = std::chrono::nanoseconds;
  return {
      {"active_send",
       [](attempt& on, nanoseconds timeout) {
         receive_by_handler(on, false, 1s);
         on.victim(on.both.sender.start_send(active_message{7, std::span(on.bytes).first(50)},
                                             on.bytes, {.timeout = timeout}));
       }},
      {"active_send_that_waits_for_its_match",
       [](attempt& on, nanoseconds timeout) {
         receive_by_handler(on, false, 1s);
         on.victim(on.both.sender.start_send(active_message{7}, std::span(on.bytes).first(1000),
                                             {.timeout = timeout, .until = send_until::matched}));
       }},
      {"active_receive",
       [](attempt& on, nanoseconds timeout) {
         receive_by_handler(on, true, timeout);
         on.beside(on.both.sender.start_send(active_message{7}, on.bytes, {.timeout = 1s}));
       },
       false, true},
      {"parts_send",
       [](attempt& on, nanoseconds timeout) {
         on.beside(on.both.receiver().start_receive(1, {on.apart, with_table}, {.timeout = 1s}));
         on.victim(on.both.sender.start_send(1, payload::parts(on.parts), {.timeout = timeout}));
       }},
      {"parts_receive",
       [](attempt& on, nanoseconds timeout) {
         on.victim(
             on.both.receiver().start_receive(1, {on.apart, with_table}, {.timeout = timeout}));
         on.beside(on.both.sender.start_send(1, payload::parts(on.parts), {.timeout = 1s}));
       }},
      {"owned_send_and_pooled_receive",
       [](attempt& on, nanoseconds timeout) {
         on.beside(on.both.receiver().start_receive(1, {on.made, on.pool}, {.timeout = 1s}));
         on.victim(on.both.sender.start_send(1, on.pool.take(), {.timeout = timeout}));
       }},
      {"pooled_receive",
       [](attempt& on, nanoseconds timeout) {
         on.victim(on.both.receiver().start_receive(1, {on.made, on.pool}, {.timeout = timeout}));
         on.beside(on.both.sender.start_send(1, on.pool.take(), {.timeout = 1s}));
       }},
      {"stream_send",
       [](attempt& on, nanoseconds timeout) {
         on.victim(on.both.sender.start_stream_send(on.bytes, {.timeout = timeout}));
       },
       true},
      {"stream_receive",
       [](attempt& on, nanoseconds timeout) {
         on.victim(on.both.sender.start_stream_receive(on.into, stream_amount::all,
                                                       {.timeout = timeout}));
         on.beside(on.back().start_stream_send(on.bytes, {.timeout = 1s}));
       },
       true},
      {"close_in_order",
       [](attempt& on, nanoseconds) {
         on.beside(on.both.receiver().start_receive(1, on.into, {.timeout = 1s}));
         on.beside(on.both.sender.start_send(1, on.bytes, {.timeout = 1s}));
         on.victim(on.both.sender.start_close(close_mode::flush));
       },
       true},
  };
}

std::vector<kind> kinds_of_accesses() {
  using nanoseconds = std::chrono::nanoseconds;
  return {
      {"read",
       [](attempt& on, nanoseconds timeout) {
         on.victim(on.region.start_read_at(0, on.into, {.timeout = timeout}));
       }},
      {"checked_read",
       [](attempt& on, nanoseconds timeout) {
         on.victim(on.region.start_read_at(0, on.into, {.timeout = timeout, .verify = true}));
       }},
      {"write",
       [](attempt& on, nanoseconds timeout) {
         on.victim(on.region.start_write_at(0, on.bytes, {.timeout = timeout}));
       },
       true},
      {"read_batch",
       [](attempt& on, nanoseconds timeout) {
         on.victim(on.region.start_read_batch(reads(on), {.timeout = timeout}));
       }},
      {"write_batch",
       [](attempt& on, nanoseconds timeout) {
         on.victim(on.region.start_write_batch(writes(on), {.timeout = timeout}));
       },
       true},
      {"flush_of_a_region",
       [](attempt& on, nanoseconds timeout) {
         on.beside(on.region.start_write_at(0, on.bytes, {.timeout = 1s}));
         on.victim(on.region.start_flush({.timeout = timeout}));
       }},
      {"flush_of_a_connection",
       [](attempt& on, nanoseconds timeout) {
         on.beside(on.region.start_write_at(0, on.bytes, {.timeout = 1s}));
         on.victim(on.both.sender.start_flush({.timeout = timeout}));
       }},
      {"flush_of_a_worker",
       [](attempt& on, nanoseconds timeout) {
         on.beside(on.region.start_write_at(0, on.bytes, {.timeout = 1s}));
         on.victim(on.both.pair.reader.start_flush({.timeout = timeout}));
       }},
      {"atomic",
       [](attempt& on, nanoseconds timeout) {
         on.victim(remote_atomic<std::uint64_t>(on.region, 0)
                       .start(atomic_operation::add, 1, &on.number, {.timeout = timeout}));
       }},
      {"notify",
       [](attempt& on, nanoseconds timeout) {
         on.beside(on.region.start_write_at(0, on.bytes, {.timeout = 1s}));
         on.victim(on.region.start_notify(5, {.timeout = timeout}));
       }},
      {"wait_for_a_notification",
       [](attempt& on, nanoseconds timeout) {
         on.victim(
             on.exposed.start_wait_notify(on.both.receiver(), on.heard, {.timeout = timeout}));
         on.beside(on.region.start_notify(5, {.timeout = 1s}));
       }},
  };
}

class EveryMoment : public testing::TestWithParam<kind> {
 protected:
  /// Returns whether the connection is as good as before.
  static void expect_usable(attempt& on, const std::string& where) {
    if (const std::error_code lost = on.both.sender.status()) {
      EXPECT_TRUE(GetParam().may_lose || lost == errc::no_memory)
          << where << ": " << on.both.sender.status().message();
      return;
    }
    std::vector<std::byte> place = blank(300'000);
    request receive = on.both.receiver().start_receive(2, place);
    request send = on.both.sender.start_send(2, std::span(on.bytes).first(place.size()));
    const std::error_code sent = on.both.outcome(send);
    EXPECT_FALSE(sent) << where << ": " << sent.message();
    EXPECT_FALSE(on.both.outcome(receive)) << where;
    EXPECT_TRUE(holds_pattern(place, 1)) << where;
    std::error_code ec;
    on.region.write_at(1000, std::span(on.bytes).first(100'000), {}, ec);
    EXPECT_FALSE(ec) << where;
    on.region.flush({}, ec);  // may tell of the write that was given up
    on.region.read_at(1000, std::span(place).first(100'000), {}, ec);
    EXPECT_FALSE(ec) << where;
    EXPECT_TRUE(holds_pattern(std::span(place).first(100'000), 1)) << where;
    EXPECT_EQ(on.pool.available() + (on.made ? 1U : 0U), 2U) << where;
  }

  /// Returns how many of the moments that were tried were before the operation's end.
  template <class GiveUp>
  int sweep(const simulated_pair_options& options, errc why, sampled tried, GiveUp give_up) {
    int early = 0;
    tried_ = 0;
    for (int moment = tried.first; moment < most_moments; moment += tried.step) {
      const std::string where = std::string(GetParam().name) + " at " + std::to_string(moment);
      ++tried_;
      attempt on(options);
      give_up(on, moment * step);
      const std::error_code ended = on.outcome(where);
      EXPECT_TRUE(!ended || ended == why || (GetParam().may_lose && on.both.sender.status()))
          << where << ": " << ended.message();
      if (ended) ++early;
      expect_usable(on, where);
    }
    return early;
  }

  /// Returns in how many of its lives the operation was given up.
  int give_up_at_every_moment(const simulated_pair_options& options) {
    const int canceled = sweep(options, errc::canceled, sampled(0), [](attempt& on, auto moment) {
      GetParam().start(on, 1s);
      on.both.settle(moment);
      on.cancel();
    });
    EXPECT_LT(canceled, tried_) << "it ends by itself, too";
    const std::size_t salt = std::string_view(GetParam().name).size();
    const int late = sweep(options, errc::timed_out, sampled(salt), [](attempt& on, auto moment) {
      GetParam().start(on, moment + 1ns);
      on.both.settle(2 * most_moments * step);
    });
    return canceled + late;
  }

 private:
  int tried_ = 0;  // moments, by the last sweep
};

simulated_pair_options in_pieces(simulated_pair_options options = {}) {
  return with_pieces_of(64U << 10U, std::move(options));
}

// Not all of the moments are behind its end: else this would show nothing.
TEST_P(EveryMoment, EndsOnceAndLeavesTheConnection) {
  EXPECT_GT(give_up_at_every_moment(in_pieces()), 0);
}

/// Starts it where all allocations behind `point` fail; returns whether any did.
bool start_without_memory(const kind& started, attempt& on, std::uint64_t point) {
  const lasting_shortage meanwhile(point);
  try {
    started.start(on, 1s);
  } catch (const std::bad_alloc&) {
  } catch (const error& failed) {
    EXPECT_EQ(failed.code(), errc::no_memory) << failed.what();
  }
  return current_shortage.failed > 0;
}

// What is half noted down would be waited for, by a flush for one.
TEST_P(EveryMoment, StartWithoutMemoryLeavesTheConnection) {
  std::uint64_t point = 0;
  for (bool any = true; any; ++point) {
    ASSERT_LT(point, 100U);
    const std::string where = "allocation " + std::to_string(point);
    attempt on(in_pieces());
    on.back();  // made now: what is simulated needs memory for it
    any = start_without_memory(GetParam(), on, point);
    on.both.settle(2s);  // what was to come beside it has timed out
    expect_usable(on, where);
    std::error_code ec;
    on.region.flush({}, ec);
    // The owner may have lacked memory for a write.
    EXPECT_TRUE(!ec || ec == errc::no_memory) << where << ": " << ec.message();
  }
  EXPECT_GT(point, 1U) << "it allocates nothing";
}

INSTANTIATE_TEST_SUITE_P(Messages, EveryMoment, testing::ValuesIn(kinds_of_messages()),
                         [](const auto& chosen) { return std::string(chosen.param.name); });
INSTANTIATE_TEST_SUITE_P(Accesses, EveryMoment, testing::ValuesIn(kinds_of_accesses()),
                         [](const auto& chosen) { return std::string(chosen.param.name); });

class EveryMomentOnOneHost : public EveryMoment {};

TEST_P(EveryMomentOnOneHost, EndsOnceAndLeavesTheConnection) {
  simulated_pair_options options = in_pieces(one_host());
  options.link.inline_limit = 4096;  // UCX's queue has no room for a piece at once
  const int given_up = give_up_at_every_moment(options);
  EXPECT_EQ(given_up == 0, GetParam().ends_at_once_on_one_host);
}

INSTANTIATE_TEST_SUITE_P(Messages, EveryMomentOnOneHost, testing::ValuesIn(kinds_of_messages()),
                         [](const auto& chosen) { return std::string(chosen.param.name); });

// Connections.

// Who took somebody and goes has refused him; who took nobody leaves the peer to the next in line.
TEST(AcceptanceAtEveryMoment, TakesNobodyOnceItIsGone) {
  int early = 0;
  int late = 0;
  for (const bool awaited : {false, true}) {
    const sampled tried(awaited ? 1 : 0);
    for (int moment = tried.first; moment < most_moments; moment += tried.step) {
      simulated_pair pair;
      listener door(pair.owner, any_port, listener_options{.manual_accept = true});
      std::optional<listener::acceptance> first(door.accept());
      if (awaited) first->await_suspend(std::noop_coroutine());
      int established = 0;
      int refused = 0;
      const endpoint client(
          pair.reader, door.address(),
          {.wait = connect_wait::none,
           .events = {
               .on_established = [&](const endpoint&, const connection_report&) { ++established; },
               .on_refused = [&](const connection_end&) { ++refused; }}});
      pair.network.advance(moment * step / 2);
      const bool took = first->await_ready();
      ++(took ? late : early);
      first.reset();
      listener::acceptance second = door.accept();
      pair.network.advance(10ms);
      ASSERT_EQ(second.await_ready(), !took) << moment;
      std::optional<endpoint> accepted;
      if (!took) accepted.emplace(pair.owner, second.wait());
      pair.network.advance(10ms);
      for (int round = 0; round < 10; ++round) pair.reader.progress();
      EXPECT_EQ(established, took ? 0 : 1) << moment;
      EXPECT_EQ(refused, took ? 1 : 0) << moment;
    }
  }
  EXPECT_GT(early, 0);
  EXPECT_GT(late, 0);
}

/// How a connection's begin is disturbed.
enum class trouble { deadline, close, abort, drop, death };

std::string name_of(trouble chosen) {
  static constexpr std::array names{"Deadline", "Close", "Abort", "Drop", "Death"};
  return names[static_cast<std::size_t>(chosen)];
}

class ConnectAtEveryMoment : public testing::TestWithParam<trouble> {};

TEST_P(ConnectAtEveryMoment, IsToldOnce) {
  int early = 0;
  for (const bool by_address : {true, false}) {
    const sampled tried(by_address ? 0 : static_cast<std::size_t>(GetParam()) + 1);
    for (int moment = tried.first; moment < most_moments; moment += tried.step) {
      const std::chrono::nanoseconds when = moment * step / 2;
      simulated_pair pair;
      const listener door(pair.owner, socket_address("127.0.0.1:0"));
      int established = 0;
      int refused = 0;
      int closed = 0;
      endpoint_options options{
          .wait = connect_wait::none,
          .events = {
              .on_established = [&](const endpoint&, const connection_report&) { ++established; },
              .on_refused = [&](const connection_end&) { ++refused; },
              .on_closed = [&](const connection_end&) { ++closed; }}};
      if (GetParam() == trouble::deadline) options.connect_timeout = when + 1ns;
      std::optional<endpoint> connection;
      if (by_address) {
        connection.emplace(pair.reader, pair.owner.address(), std::move(options));
      } else {
        connection.emplace(pair.reader, door.address(), std::move(options));
      }
      pair.network.advance(when);
      if (connection->state() != connection_state::active) ++early;
      std::optional<request> closing;
      int ends = 0;
      switch (GetParam()) {
        case trouble::deadline:
          break;
        case trouble::close:
        case trouble::abort:
          closing = connection->start_close(GetParam() == trouble::close ? close_mode::flush
                                                                         : close_mode::abort);
          closing->then([&](std::error_code) { ++ends; });
          break;
        case trouble::drop:
          connection.reset();
          break;
        case trouble::death:
          pair.owner_process.kill();
          break;
      }
      pair.network.advance(7s);
      for (int round = 0; round < 10; ++round) pair.reader.progress();
      EXPECT_LE(established, 1) << moment;
      EXPECT_LE(refused + closed, 1) << moment;
      if (closing) {
        EXPECT_TRUE(closing->done()) << moment;
        EXPECT_EQ(ends, 1) << moment;
        EXPECT_EQ(connection->state(), connection_state::closed) << moment;
      }
      if (GetParam() == trouble::deadline || GetParam() == trouble::death) {
        // One or the other; and what was established is lost only with its peer.
        EXPECT_EQ(established + refused, 1) << moment;
        const bool lost = GetParam() == trouble::death;
        EXPECT_EQ(closed, lost ? established : 0) << moment;
      }
    }
  }
  EXPECT_GT(early, 0);
}

INSTANTIATE_TEST_SUITE_P(Troubles, ConnectAtEveryMoment,
                         testing::Values(trouble::deadline, trouble::close, trouble::abort,
                                         trouble::drop, trouble::death),
                         [](const auto& chosen) { return name_of(chosen.param); });

}  // namespace
}  // namespace ucx::test
