// Memory that runs short while UCX calls back: nothing may leave through UCX, nothing gets lost,
// and whoever waits is told.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <ios>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/fake_ucp/callback_scope.hpp"
#include "support/replaced/replaced_new.hpp"
#include "support/replaced/short_memory.hpp"
#include "support/replaced/shortage.hpp"
#include "support/simulated/frame_peer.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "ucx/buffer.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/remote_region.hpp"

namespace ucx::test {

bool may_allocate() noexcept { return !memory_is_short() && !memory_is_short_here(); }

namespace {

/// Runs `scenario` with every allocation of UCX's callbacks failing in turn, until none is left
/// that could: once alone, and once with all behind it.
template <class Scenario>
void with_every_shortage(Scenario scenario) {
  for (const bool lasts : {false, true}) {
    std::uint64_t point = 0;
    for (bool any = true; any; ++point) {
      ASSERT_LT(point, 1000U);
      SCOPED_TRACE(testing::Message() << "allocation " << point << (lasts ? " and later" : ""));
      any = scenario([point, lasts] { current_shortage = {.left = point, .lasts = lasts}; });
    }
    EXPECT_GT(point, 1U) << "nothing was allocated inside UCX's callbacks";
  }
}

/// Several messages of every kind, to a receiver that waits for some of them.
TEST(MessageMemory, ShortAtTheReceiverEndsTheConnection) {
  with_every_shortage([](auto begin) {
    simulated_messages both;
    int handled = 0;
    both.receiver().on_message(3, [&](message) { ++handled; });
    std::vector<std::byte> into(600'000);
    buffer made;
    request receive = both.receiver().start_receive(1, into);
    request makes = both.receiver().start_receive(2, {made, into.size()});
    const std::vector<std::byte> small = pattern(3000);
    const std::vector<std::byte> big = pattern(into.size());
    begin();
    std::vector<request> sends;
    sends.push_back(both.sender.start_send(1, big));
    sends.push_back(both.sender.start_send(2, big));
    sends.push_back(both.sender.start_send(7, small));
    sends.push_back(both.sender.start_send(8, big));
    sends.push_back(both.sender.start_send(active_message{3, small}, small));
    sends.push_back(both.sender.start_send(active_message{4}, small));
    sends.push_back(both.sender.start_stream_send(small));
    both.settle(std::chrono::milliseconds(50));
    const bool any = was_short();
    const std::error_code ended = both.sender.status();
    EXPECT_TRUE(any || !ended);
    // Everything ends, and what has ended well is whole.
    sends[3].cancel();
    for (request& each : sends) {
      both.outcome(each);
      EXPECT_TRUE(each.done());
    }
    if (ended) {
      receive.cancel();
      makes.cancel();
    }
    EXPECT_TRUE(both.outcome(receive) || holds_pattern(into));
    EXPECT_TRUE(both.outcome(makes) || holds_pattern(made.bytes()));
    while (std::optional<message> left = both.receiver().take(tag_match::any())) {
      EXPECT_TRUE(holds_pattern(left->data()));
    }
    // The worker goes on: with another connection.
    endpoint again(both.pair.reader, both.receiver().address());
    request late = again.start_send(9, small);
    EXPECT_TRUE(holds_pattern(both.take(9).data()));
    EXPECT_FALSE(both.outcome(late));
    return any;
  });
}

/// A message that the hardware is to read: the shortage may be at either side.
TEST(MessageMemory, ShortWhereAMessageIsFetchedLosesNothing) {
  with_every_shortage([](auto begin) {
    simulated_pair_options options;
    options.link.emulated_rma = false;
    options.link.resources = {"self/memory0", "rc_verbs/rxe0:1"};
    simulated_messages both(options);
    const std::vector<std::byte> big = pattern(std::size_t{3} << 20U);
    std::vector<std::byte> into(big.size());
    buffer made;
    request receive = both.receiver().start_receive(1, into);
    begin();
    request send = both.sender.start_send(1, big);
    request other = both.sender.start_send(2, big);
    both.settle(std::chrono::milliseconds(20));
    request makes = both.receiver().start_receive(2, {made, into.size()});
    both.settle(std::chrono::milliseconds(20));
    other.cancel();
    both.settle(std::chrono::milliseconds(20));
    const bool any = was_short();
    if (both.sender.status()) {
      receive.cancel();
      makes.cancel();
    }
    EXPECT_TRUE(both.network().run_until(
        [&] { return send.done() && other.done() && receive.done() && makes.done(); }));
    EXPECT_TRUE(any || !both.sender.status());
    EXPECT_TRUE(both.outcome(receive) || holds_pattern(into));
    EXPECT_TRUE(both.outcome(makes) || holds_pattern(made.bytes()));
    EXPECT_TRUE(both.outcome(send) || holds_pattern(into));
    EXPECT_EQ(both.network().live().memories, 0U);
    EXPECT_EQ(both.network().live().rkeys, 0U);
    return any;
  });
}

/// Sends that wait for room, and gather: they are copied where the peer's credit comes.
TEST(MessageMemory, ShortAtTheSenderFailsItsSends) {
  with_every_shortage([](auto begin) {
    simulated_pair_options options;
    options.owner_worker.message_window = 16U << 10U;
    simulated_messages both(options);
    const std::vector<std::byte> part = pattern(1500);
    const std::vector<std::span<const std::byte>> parts{part, part};
    int ended = 0;
    int room = 0;
    message_handlers handlers;
    handlers.on_sent = [&](std::uint64_t, std::error_code) { ++ended; };
    handlers.on_writable = [&] { ++room; };
    both.sender.set_message_handlers(std::move(handlers));
    std::error_code ec;
    for (std::uint64_t key = 0; key < 30; ++key) both.sender.post_send(key, parts, key, {}, ec);
    const std::vector<std::byte> bytes = pattern(300'000);
    request stream = both.sender.start_stream_send(bytes);
    both.settle();
    begin();
    while (both.receiver().take(tag_match::any()) || both.receiver().probe(tag_match::any())) {
      both.settle();
    }
    const bool any = was_short();
    while (both.receiver().take(tag_match::any())) both.settle();
    stream.cancel();
    both.outcome(stream);
    std::error_code ignored;
    both.sender.close(close_mode::abort, ignored);
    both.settle();
    EXPECT_EQ(ended, 30) << "every key comes back, once";
    return any;
  });
}

/// Messages that come in another order than they were sent in are noted down first.
TEST(MessageMemory, ShortForWhatIsHeldBackEndsTheConnection) {
  with_every_shortage([](auto begin) {
    simulated_pair pair;
    frame_peer peer(pair.network, "peer");
    peer.room = 16384;
    peer.welcome_everybody();
    const endpoint connection(pair.reader, peer.its_address());
    pair.network.advance(std::chrono::milliseconds(1));
    begin();
    for (const std::uint64_t number : {5U, 3U, 2U, 4U, 1U}) {
      detail::parcel said;
      said.code = detail::parcel_code::message;
      said.session = peer.guest_session;
      said.number = number;
      said.length = 3000;
      peer.say(peer.guest, said, {}, pattern(3000, number));
    }
    pair.network.advance(std::chrono::milliseconds(10));
    const bool any = was_short();
    EXPECT_EQ(connection.status() == errc::no_memory, any);
    for (std::uint64_t number = 1; std::optional<message> came = pair.reader.take(0); ++number) {
      EXPECT_TRUE(holds_pattern(came->data(), number));
    }
    return any;
  });
}

/// Connecting, and the frames of regions, come the same way.
TEST(MessageMemory, ShortForFramesEndsTheConnectionAndNothingElse) {
  with_every_shortage([](auto begin) {
    simulated_pair_options options;
    options.reader_worker.connect_timeout = std::chrono::milliseconds(100);
    options.reader_worker.operation_timeout = std::chrono::milliseconds(100);
    options.reader_worker.close_timeout = std::chrono::milliseconds(100);
    simulated_pair pair(options);
    std::vector<std::byte> memory = pattern(300'000);
    const std::vector<std::byte> written = pattern(10'000);
    memory_region exposed(pair.owner_context, std::span(memory), access::read_write);
    begin();
    {
      endpoint connection = pair.connect();
      std::error_code ec;
      connection.wait_connected(ec);
      if (!ec) {
        remote_region region(connection, exposed.descriptor());
        std::vector<std::byte> into(90'000);
        request read = region.start_read_at(0, into);
        request write = region.start_write_at(into.size(), std::span<const std::byte>(written));
        read.wait(ec);
        write.wait(ec);
      }
    }
    const bool any = was_short();
    endpoint again = pair.connect();
    remote_region region(again, exposed.descriptor());
    std::vector<std::byte> into(90'000);
    region.read_at(0, into);
    EXPECT_TRUE(holds_pattern(into));
    // An access that had got lost would be waited for: five seconds long.
    const auto begun = pair.network.now();
    exposed.close();
    EXPECT_LT(pair.network.now() - begun, std::chrono::seconds(3));
    return any;
  });
}

/// The program's own calls fail as calls do, and leave everything as it was.
TEST(MessageMemory, BufferOfAnUnstartedSendIsTheCallers) {
  simulated_messages both;
  const std::vector<std::byte> header = pattern(4000);
  for (std::uint64_t point = 0; point < 20; ++point) {
    buffer owned(1000);
    fill_pattern(owned.bytes());
    bool thrown = false;
    request send;
    {
      const callback_scope inside(true);
      current_shortage = {.left = point};
      try {
        send = both.sender.start_send(active_message{3, header}, std::move(owned));
      } catch (const std::bad_alloc&) {
        thrown = true;
      }
    }
    const bool any = was_short();
    if (thrown) {
      EXPECT_TRUE(owned);
      EXPECT_TRUE(holds_pattern(owned.bytes()));
    }
    if (!any) break;
    ASSERT_LT(point, 19U);
  }
  EXPECT_FALSE(both.sender.status());
}

/// More of them than there is room for in advance.
TEST(MessageMemory, ShortForLongHidesNoEnd) {
  constexpr int many = 300;
  simulated_pair pair;
  int closed = 0;
  std::vector<endpoint> all;
  for (int i = 0; i < many; ++i) {
    all.push_back(
        pair.connect({.events = {.on_closed = [&](const connection_end&) { ++closed; }}}));
    std::error_code ec;
    all.back().wait_connected(ec);
    ASSERT_FALSE(ec) << i;
  }
  pair.reader_process.on_pump({});
  pair.owner_process.kill();
  std::uint64_t failed = 0;
  for (int i = 0; i < 50; ++i) {
    pair.network.advance(std::chrono::milliseconds(100));
    const lasting_shortage begun;
    round(pair.reader);
    failed += current_shortage.failed;
  }
  EXPECT_GT(failed, 0U);
  for (int i = 0; i < 50 && closed < many; ++i) {
    pair.network.advance(std::chrono::milliseconds(10));
    round(pair.reader);
  }
  EXPECT_EQ(closed, many);
  for (const endpoint& each : all) EXPECT_TRUE(each.status());
}

/// Who gives up waits until nobody touches what was lent, and that ends without memory, too.
TEST(MessageMemory, ShortForLongLetsDestructorsReturn) {
  simulated_pair pair;
  std::vector<std::byte> memory = pattern(300'000);
  const memory_region exposed(pair.owner_context, std::span(memory), access::read_write);
  endpoint connection = pair.connect();
  std::error_code ec;
  connection.wait_connected(ec);
  ASSERT_FALSE(ec);
  remote_region region(connection, exposed.descriptor());
  const std::vector<std::byte> written = pattern(100'000);
  std::vector<std::byte> into(100'000);
  request read = region.start_read_at(0, into);
  request write = region.start_write_at(into.size(), std::span<const std::byte>(written));
  pair.owner_process.stop();
  pair.reader_process.on_pump({});
  {
    const lasting_shortage begun;
    read = request();
    write = request();
  }
  pair.owner_process.resume();
  endpoint again = pair.connect();
  again.wait_connected(ec);
  EXPECT_FALSE(ec);
}

/// A pipe whose one end runs short of memory in a call of its own.
struct short_pipe {
  static constexpr std::size_t sizes[] = {10, 5000, 1, 100, 70'000, 300, 20'000};
  static constexpr std::size_t whole = 95'411;

  short_pipe() { came.reserve(2 * whole); }

  /// Writes what there is, as a program does that goes on from where it is when a call failed;
  /// returns how closing went.
  std::error_code write(bool syncs) {
    std::size_t to = 0;
    for (const std::size_t size : sizes) {
      to += size;
      for (int tries = 0; tries < 3 && position() < to; ++tries) {
        try {
          const auto length = static_cast<std::streamsize>(to - position());
          const bool put = out.sputn(text.data() + position(), length) == length;
          if (put && syncs) out.pubsync();
        } catch (const std::bad_alloc&) {
        }
      }
    }
    std::error_code ended;
    try {
      out.close_output(ended);
    } catch (const std::bad_alloc&) {
      ended = make_error_code(errc::no_memory);
    }
    return ended;
  }
  /// Reads to the end, and returns which that was.
  std::error_code read() {
    for (int tries = 0; tries < 3;) {
      try {
        const int next = in.sbumpc();
        if (next == pipe_streambuf::traits_type::eof()) return {};
        came.push_back(static_cast<char>(next));
      } catch (const std::bad_alloc&) {
        ++tries;
      } catch (const error& failed) {
        return failed.code();
      }
    }
    return make_error_code(errc::no_memory);
  }
  std::size_t position() {
    return static_cast<std::size_t>(out.pubseekoff(0, std::ios_base::cur, std::ios_base::out));
  }

  // The test's own memory is not what is short.
  const std::string text = pattern_text(whole);
  std::string came;
  const pipe_options options{.window = 256U << 10U, .timeout = std::chrono::seconds(5)};
  simulated_messages both;
  pipe_streambuf in{both.pair.owner, both.back(), std::ios_base::in, options};
  pipe_streambuf out{both.pair.reader, std::move(both.sender), std::ios_base::out, options};
};

/// The reader gets each byte once and in order, all of them where nobody was told of a failure, and
/// nobody hangs.
template <class Arm>
bool reads_what_was_written(bool syncs, bool writer_is_short, Arm arm) {
  short_pipe pipe;
  std::error_code ended;
  std::error_code read;
  {
    const callback_scope inside(writer_is_short);
    if (writer_is_short) arm();
    ended = pipe.write(syncs);
  }
  bool any = was_short();
  if (ended) pipe.out.abort();
  {
    const callback_scope inside(!writer_is_short);
    if (!writer_is_short) arm();
    read = pipe.read();
  }
  any = was_short() || any;
  EXPECT_TRUE(pipe.text.starts_with(pipe.came)) << pipe.came.size();
  EXPECT_TRUE(ended || read || pipe.came == pipe.text) << pipe.came.size();
  EXPECT_TRUE(!ended || read) << ended << " after " << pipe.came.size();
  return any;
}

TEST(PipeMemory, ShortAtEitherEndLosesAndRepeatsNothingInSilence) {
  for (const bool syncs : {true, false}) {
    for (const bool writer_is_short : {true, false}) {
      SCOPED_TRACE(testing::Message() << syncs << ", writer " << writer_is_short);
      std::uint64_t point = 0;
      for (bool any = true; any; ++point) {
        ASSERT_LT(point, 1000U);
        SCOPED_TRACE(testing::Message() << "allocation " << point);
        any = reads_what_was_written(syncs, writer_is_short,
                                     [point] { current_shortage = {.left = point}; });
      }
      EXPECT_GT(point, 1U) << "nothing was allocated";
    }
  }
}

}  // namespace
}  // namespace ucx::test
