// Either end of a pipe against a peer that dies, falls silent, or breaks the rules, message by
// message: in virtual time.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "pipes/pipe_frame.hpp"
#include "pipes/pipe_input.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "ucx/error.hpp"
#include "ucx/pipe_stream.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using detail::pipe_said;

constexpr std::size_t piece = std::size_t{16} << 10U;
constexpr std::size_t window = pipe_options::min_window;

/// A connection whose one side is a pipe's, and whose other side says what the test wants.
struct scene {
  void say(pipe_said what, std::span<const std::byte> bytes) { say(detail::pipe_tag(what), bytes); }
  void say(std::uint64_t tag, std::span<const std::byte> bytes) {
    peer.post_send(tag, bytes, 0, {.memory = send_memory::copied}, unused);
    both.settle();
  }
  std::uint64_t next_tag(pipe_said what = pipe_said::data) {
    return detail::pipe_tag(what, number++);
  }
  void say_data(std::size_t size) { say(next_tag(), pattern(size)); }
  void say_end(std::uint64_t total, errc status = {}) {
    say(pipe_said::end, encode(detail::pipe_end{total, static_cast<std::uint32_t>(status)}));
  }
  void say_hello(std::uint64_t most = piece, std::uint64_t room = window) {
    say(pipe_said::hello, encode(detail::pipe_hello{.piece = most, .window = room}));
  }
  /// Makes the end that a writer says have a place, and returns it when it was said.
  void await_end() {
    end = both.receiver().start_receive(detail::pipe_tag(pipe_said::end), std::span(end_bytes));
  }
  detail::pipe_end end_said() {
    EXPECT_FALSE(both.outcome(end));
    return detail::decode_pipe_end(end_bytes).value_or(detail::pipe_end{});
  }
  void say_count(pipe_said what, std::uint64_t bytes) {
    say(what, detail::encode_pipe_count(bytes));
  }
  pipe_streambuf reader(const pipe_options& options = {.window = window}) {
    return {both.pair.reader, std::move(both.sender), std::ios_base::in, options};
  }
  pipe_streambuf writer(const pipe_options& options = {}) {
    say_hello();
    return {both.pair.reader, std::move(both.sender), std::ios_base::out, options};
  }

  simulated_messages both;
  endpoint peer = both.back();
  std::error_code unused;
  std::uint16_t number = 0;
  detail::pipe_end_bytes end_bytes{};
  request end;
};

/// Reads all there is, and returns how it ended.
std::error_code read_all(pipe_streambuf& in, std::size_t& count) {
  count = 0;
  try {
    while (in.sbumpc() != pipe_streambuf::traits_type::eof()) ++count;
  } catch (const error& failed) {
    return failed.code();
  }
  return {};
}

std::error_code end_of(pipe_streambuf& in) {
  std::size_t count = 0;
  return read_all(in, count);
}

/// Writes pieces until that fails.
std::error_code write_all(pipe_streambuf& out) {
  const std::string text(piece, 'x');
  for (int i = 0; i < 100; ++i) {
    if (out.sputn(text.data(), piece) != static_cast<std::streamsize>(piece)) break;
    if (out.pubsync() != 0) break;
  }
  return out.error();
}

TEST(PipeEnd, ReadsToTheEndThatWasSaid) {
  scene other;
  pipe_streambuf in = other.reader();
  other.say_data(1000);
  other.say_data(1);
  other.say_end(1001);
  std::size_t count = 0;
  EXPECT_FALSE(read_all(in, count));
  EXPECT_EQ(count, 1001U);
  EXPECT_FALSE(in.error());
}

TEST(PipeEnd, TakesAnEndThatComesBeforeTheData) {
  scene other;
  pipe_streambuf in = other.reader();
  other.say_end(1000);
  other.say_data(1000);
  std::size_t count = 0;
  EXPECT_FALSE(read_all(in, count));
  EXPECT_EQ(count, 1000U);
}

TEST(PipeEnd, DoesNotTakeTheLossOfAPeerForAnEnd) {
  scene other;
  pipe_streambuf in = other.reader();
  other.say_data(1000);
  other.say_end(1001);  // a byte is missing
  other.both.pair.owner_process.kill();
  std::size_t count = 0;
  EXPECT_EQ(read_all(in, count), errc::connection_reset);
  EXPECT_EQ(count, 1000U);
  EXPECT_NE(in.error_message().find("1000 bytes"), std::string::npos) << in.error_message();
  EXPECT_NE(in.error_message().find("was lost"), std::string::npos) << in.error_message();
}

TEST(PipeEnd, TellsThatTheWriterGaveUpForWhatNobodyKnows) {
  scene other;
  pipe_streambuf in = other.reader();
  other.say_end(0, static_cast<errc>(0x7fff'ffff));
  EXPECT_EQ(end_of(in), errc::connection_reset);
  EXPECT_NE(in.error_message().find("gave up"), std::string::npos) << in.error_message();
}

TEST(PipeEnd, KnowsWithoutWaitingWhatThereIsToRead) {
  scene other;
  pipe_streambuf in = other.reader();
  EXPECT_EQ(in.in_avail(), 0);
  other.say_data(10);
  EXPECT_EQ(in.in_avail(), 10);
  for (int i = 0; i < 10; ++i) in.sbumpc();
  EXPECT_EQ(in.in_avail(), 0);
  EXPECT_EQ(in.in_avail(), 0);
  // The writer is told, although nothing more was read.
  EXPECT_EQ(other.both.take(detail::pipe_tag(pipe_said::taken)).length(), 8U);
  EXPECT_NE(in.sungetc(), std::char_traits<char>::eof());
  EXPECT_EQ(in.in_avail(), 1);
  in.sbumpc();
  other.say_data(5);
  EXPECT_EQ(in.in_avail(), 5);
  EXPECT_NE(in.sungetc(), std::char_traits<char>::eof());
  in.sbumpc();
  other.say_end(15);
  EXPECT_EQ(in.in_avail(), 5);
  for (int i = 0; i < 5; ++i) in.sbumpc();
  EXPECT_EQ(in.in_avail(), -1);
}

TEST(PipeEnd, DoesNotThrowWhereItLooksForWhatThereIs) {
  scene other;
  pipe_streambuf in = other.reader();
  other.say_data(0);
  EXPECT_NO_THROW(EXPECT_EQ(in.in_avail(), 0));
  EXPECT_EQ(end_of(in), errc::protocol_error);
}

TEST(PipeEnd, TellsWhatWasTakenBeforeAWriterWaits) {
  scene other;
  pipe_streambuf in = other.reader();
  other.say_data(1000);
  other.say_data(1000);
  for (int i = 0; i < 1001; ++i) in.sbumpc();
  // There is more to read, and it did not wait.
  EXPECT_EQ(other.both.take(detail::pipe_tag(pipe_said::taken)).length(), 8U);
}

TEST(PipeEnd, EndsWellWhereThePeerDiedBehindItsEnd) {
  scene other;
  pipe_streambuf in = other.reader();
  other.say_data(1000);
  other.say_end(1000);
  other.both.pair.owner_process.kill();
  other.both.settle(1s);
  std::size_t count = 0;
  EXPECT_FALSE(read_all(in, count));
  EXPECT_EQ(count, 1000U);
}

TEST(PipeEnd, ReadsEverythingThatCameBeforeALoss) {
  for (const bool with_end : {true, false}) {
    scene other;
    pipe_streambuf in = other.reader();
    for (int i = 0; i < 40; ++i) other.say_data(1000);  // more than there are receives
    if (with_end) other.say_end(40'000);
    other.both.pair.owner_process.kill();
    other.both.settle(1s);
    std::size_t count = 0;
    EXPECT_EQ(read_all(in, count),
              with_end ? std::error_code() : make_error_code(errc::connection_reset));
    EXPECT_EQ(count, 40'000U);
  }
}

std::vector<std::byte> pattern_at(std::size_t size, std::uint64_t position) {
  std::vector<std::byte> bytes(size);
  fill_pattern(bytes, 0, position);
  return bytes;
}

/// A message that was only announced goes with its writer, and what came behind it is no data then.
TEST(PipeEnd, ReadsNothingBehindWhatALossTook) {
  scene other;
  pipe_streambuf in = other.reader({.window = 8U << 20U});
  constexpr std::size_t whole = 100'000;
  std::size_t sent = 0;
  // More than there are receives; then more than goes whole, and at last a short one again.
  for (; sent < 9 * whole; sent += whole) {
    other.say(other.next_tag(), pattern_at(whole, sent));
  }
  const std::vector<std::byte> announced = pattern_at(detail::pipe_input::piece + 1000, sent);
  const request lost = other.peer.start_send(other.next_tag(), announced);
  other.say(other.next_tag(), pattern_at(1000, sent + announced.size()));
  other.both.pair.owner_process.kill();
  other.both.settle(5s);
  std::vector<std::byte> came(20 * whole);
  std::size_t count = 0;
  try {
    for (int c = in.sbumpc(); c != pipe_streambuf::traits_type::eof(); c = in.sbumpc()) {
      came.at(count++) = static_cast<std::byte>(c);
    }
  } catch (const error& failed) {
    EXPECT_EQ(failed.code(), errc::connection_reset);
  }
  EXPECT_EQ(in.error(), errc::connection_reset);
  EXPECT_EQ(count, sent);
  EXPECT_TRUE(holds_pattern(std::span(came).first(count)));
}

/// The same of one that its writer gives up, which may have more to say.
TEST(PipeEnd, ReadsNothingBehindWhatItsWriterGaveUp) {
  for (const bool says_so : {false, true}) {
    scene other;
    pipe_streambuf in = other.reader({.window = 8U << 20U});
    for (int i = 0; i < 9; ++i) other.say_data(1000);
    const std::vector<std::byte> announced = pattern(detail::pipe_input::piece + 1000);
    request given_up = other.peer.start_send(other.next_tag(), announced);
    other.say_data(1000);
    given_up.cancel();
    if (says_so) other.say_end(9'000, errc::canceled);  // it may not know of the last
    other.both.settle();
    std::size_t count = 0;
    EXPECT_EQ(read_all(in, count), errc::connection_reset);
    EXPECT_EQ(count, 9'000U);
    EXPECT_NE(in.error_message().find("after 9000 bytes"), std::string::npos) << in.error_message();
  }
}

TEST(PipeEnd, SaysAtAFlushThatTheReaderIsGone) {
  scene other;
  pipe_streambuf out = other.writer();
  EXPECT_EQ(out.pubsync(), 0);
  EXPECT_EQ(out.sputn("x", 1), 1);
  other.both.pair.owner_process.kill();
  other.both.settle(5s);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(out.pubsync(), -1) << "also with nothing left to send";
    EXPECT_EQ(out.error(), errc::connection_reset);
  }
}

TEST(PipeEnd, FailsWhenThePeerFallsSilent) {
  scene other;
  pipe_streambuf in = other.reader();
  other.both.pair.owner_process.stop();
  EXPECT_EQ(end_of(in), errc::connection_reset);
  other.both.pair.owner_process.resume();
}

TEST(PipeEnd, WaitsForAWriterThatIsOnlySlow) {
  scene other;
  pipe_streambuf in = other.reader({.window = window, .timeout = 20s});
  EXPECT_EQ(end_of(in), errc::timed_out);
  other.say_data(10);
  other.say_end(10);
  std::size_t count = 0;
  EXPECT_FALSE(read_all(in, count));
  EXPECT_EQ(count, 10U);
}

TEST(PipeEnd, TellsThatTheWriterGaveUp) {
  scene other;
  pipe_streambuf in = other.reader();
  other.say_data(10);
  other.say_end(10, errc::no_memory);
  std::size_t count = 0;
  EXPECT_EQ(read_all(in, count), errc::connection_reset);
  EXPECT_EQ(count, 10U);
  EXPECT_NE(in.error_message().find("out of memory"), std::string::npos) << in.error_message();
}

using breach = std::pair<const char*, void (*)(scene&)>;

TEST(PipeEnd, RefusesWhatNoWriterMaySay) {
  const std::vector<breach> breaches{
      {"empty", [](scene& self) { self.say_data(0); }},
      {"longer than a message", [](scene& self) { self.say_data(window + 1); }},
      {"beyond the end",
       [](scene& self) {
         self.say_end(5);
         self.say_data(10);
       }},
      {"an end before what came",
       [](scene& self) {
         self.say_data(10);
         self.say_data(10);
         self.say_end(15);
       }},
      {"a place where it was offered none",
       [](scene& self) {
         self.say(self.next_tag(pipe_said::placed), encode(detail::pipe_place{0, 10}));
       }},
      {"a place that is none",
       [](scene& self) { self.say(self.next_tag(pipe_said::placed), pattern(9)); }},
      {"the same message twice",
       [](scene& self) {
         self.say_data(10);
         --self.number;
         self.say_data(10);
       }},
      {"an end that is none", [](scene& self) { self.say(pipe_said::end, pattern(16, 3)); }},
      {"an end too short", [](scene& self) { self.say(pipe_said::end, pattern(15)); }},
      {"an end too long", [](scene& self) { self.say(pipe_said::end, pattern(17)); }},
  };
  for (const auto& [name, break_it] : breaches) {
    scene other;
    pipe_streambuf in = other.reader();
    break_it(other);
    EXPECT_EQ(end_of(in), errc::protocol_error) << name;
    EXPECT_EQ(end_of(in), errc::protocol_error) << name << ", again";
  }
}

TEST(PipeEnd, WritesAsMuchAsWasGranted) {
  scene other;
  pipe_streambuf out = other.writer({.timeout = 1s});
  EXPECT_EQ(write_all(out), errc::timed_out);
  // Each message takes some room beside its bytes.
  EXPECT_EQ(out.sent(), window - piece);
  other.say_count(pipe_said::taken, piece);
  EXPECT_EQ(write_all(out), errc::timed_out);
  EXPECT_EQ(out.sent(), window);
  EXPECT_EQ(out.consumed(), piece);
  EXPECT_EQ(other.both.take(detail::pipe_of_data()).length(), piece);
}

TEST(PipeEnd, HasNoMoreMessagesOnTheirWayThanFitTheWindow) {
  scene other;
  pipe_streambuf out = other.writer({.timeout = 1s});
  while (out.sputc('x') == 'x' && out.pubsync() == 0 && out.sent() < window) continue;
  EXPECT_EQ(out.error(), errc::timed_out);
  EXPECT_EQ(out.sent(), window / (detail::pipe_message_cost + 1));
}

TEST(PipeEnd, WritesWhatFitsTheWindowAlthoughNobodyReceives) {
  scene other;
  other.say_hello((std::size_t{256} << 10U) - 512, std::size_t{8} << 20U);
  pipe_streambuf out(other.both.pair.reader, std::move(other.both.sender), std::ios_base::out,
                     {.timeout = 1s});
  const std::string text(std::size_t{6} << 20U, 'x');
  const auto size = static_cast<std::streamsize>(text.size());
  EXPECT_EQ(out.sputn(text.data(), size), size);
  EXPECT_FALSE(out.error()) << out.error_message();
  const std::streamsize more = out.sputn(text.data(), size);
  EXPECT_EQ(more + size, static_cast<std::streamsize>(out.sent()));
  EXPECT_EQ(out.error(), errc::timed_out);
}

TEST(PipeEnd, KeepsToItsOwnMemoryWhateverAReaderGrants) {
  scene other;
  other.say_hello(detail::most_pipe_window, detail::most_pipe_window);
  pipe_streambuf out(other.both.pair.reader, std::move(other.both.sender), std::ios_base::out,
                     {.timeout = 1s});
  EXPECT_LE(out.prepare().size(), std::size_t{256} << 10U);
  const std::string text(std::size_t{9} << 20U, 'x');
  out.sputn(text.data(), static_cast<std::streamsize>(text.size()));
  EXPECT_EQ(out.error(), errc::timed_out);
  EXPECT_LE(out.sent(), pipe_options().window);
}

TEST(PipeEnd, WaitsNoLongerForAReaderThatTakesABitAtATime) {
  scene other;
  pipe_streambuf out = other.writer({.timeout = 1s});
  EXPECT_EQ(write_all(out), errc::timed_out);
  std::vector<scheduled_call> bits;
  for (std::uint64_t bit = 1; bit <= 20; ++bit) {
    bits.push_back(other.both.receiver().call_after(bit * 300ms, [&, bit] {
      other.peer.post_send(detail::pipe_tag(pipe_said::taken), detail::encode_pipe_count(bit), 0,
                           {.memory = send_memory::copied}, other.unused);
    }));
  }
  EXPECT_EQ(write_all(out), errc::timed_out);
  EXPECT_GT(out.consumed(), 0U);
  EXPECT_LE(out.consumed(), 4U);
}

TEST(PipeEnd, EndsWellWhereACutWriteWasMadeUpFor) {
  scene other;
  pipe_streambuf out = other.writer({.timeout = 1s});
  const std::string text(window + 10, 'x');
  const auto size = static_cast<std::streamsize>(text.size());
  const std::streamsize done = out.sputn(text.data(), size);
  EXPECT_LT(done, size);
  EXPECT_EQ(out.error(), errc::timed_out);
  other.say_count(pipe_said::taken, out.sent());
  EXPECT_EQ(out.sputn(text.data() + done, size - done), size - done);
  other.await_end();
  std::error_code ec;
  out.close(ec);
  EXPECT_FALSE(ec) << out.error_message();
  const detail::pipe_end said = other.end_said();
  EXPECT_EQ(said.total, text.size());
  EXPECT_EQ(said.status, 0U);
}

TEST(PipeEnd, DoesNotEndWellWhereOnlyOtherBytesWereFlushed) {
  scene other;
  pipe_streambuf out = other.writer({.timeout = 1s});
  const std::string text(window + 10, 'x');
  const auto size = static_cast<std::streamsize>(text.size());
  EXPECT_LT(out.sputn(text.data(), size), size);
  other.say_count(pipe_said::taken, out.sent());
  EXPECT_EQ(out.pubsync(), 0);
  EXPECT_EQ(out.sputc('y'), 'y');
  EXPECT_EQ(out.pubsync(), 0);
  other.await_end();
  std::error_code ec;
  out.close_output(ec);
  EXPECT_EQ(ec, errc::timed_out);
  EXPECT_EQ(other.end_said().status, static_cast<std::uint32_t>(errc::timed_out));
  out.close(ec);
  EXPECT_EQ(ec, errc::timed_out);
}

TEST(PipeEnd, ForgetsNoFailedWriteForReadsThatSucceed) {
  scene other;
  other.say_hello();
  pipe_streambuf both(other.both.pair.reader, std::move(other.both.sender),
                      std::ios_base::in | std::ios_base::out, {.window = window, .timeout = 1s});
  EXPECT_EQ(write_all(both), errc::timed_out);
  other.say_data(1);
  both.sbumpc();
  EXPECT_FALSE(both.error());
  other.await_end();
  std::error_code ec;
  both.close_output(ec);
  EXPECT_EQ(ec, errc::timed_out);
  EXPECT_EQ(other.end_said().status, static_cast<std::uint32_t>(errc::timed_out));
}

TEST(PipeEnd, HasNothingToFlushOrEndWhereItIsNotOpen) {
  pipe_streambuf nothing;
  std::error_code ec;
  nothing.close_output(ec);
  EXPECT_EQ(ec, errc::closed);
  EXPECT_EQ(nothing.pubsync(), -1);
}

TEST(PipeEnd, RefusesWhatNoReaderMaySay) {
  const std::vector<breach> breaches{
      {"more than was sent", [](scene& self) { self.say_count(pipe_said::taken, window + 1); }},
      {"less than before",
       [](scene& self) {
         self.say_count(pipe_said::taken, piece);
         self.say_count(pipe_said::taken, piece - 1);
       }},
      {"the same twice",
       [](scene& self) {
         self.say_count(pipe_said::taken, piece);
         self.say_count(pipe_said::taken, piece);
       }},
      {"a second hello", [](scene& self) { self.say_hello(); }},
      {"a count too short", [](scene& self) { self.say(pipe_said::taken, pattern(7)); }},
      {"a count too long", [](scene& self) { self.say(pipe_said::taken, pattern(100)); }},
      {"longer than anything", [](scene& self) { self.say(pipe_said::taken, pattern(5000)); }},
      {"places twice",
       [](scene& self) {
         for (int i = 0; i < 2; ++i) {
           self.say(pipe_said::ring, encode(detail::pipe_ring{4, 1U << 20U, pattern(100)}));
         }
       }},
      {"places that are none", [](scene& self) { self.say(pipe_said::ring, pattern(8)); }},
      {"what nobody says", [](scene& self) { self.say(pipe_said{21}, pattern(8)); }},
  };
  for (const auto& [name, break_it] : breaches) {
    scene other;
    pipe_streambuf out = other.writer({.timeout = 1s});
    EXPECT_EQ(write_all(out), errc::timed_out) << name;
    break_it(other);
    EXPECT_EQ(write_all(out), errc::protocol_error) << name;
    std::error_code ec;
    out.close(ec);
    EXPECT_EQ(ec, errc::protocol_error) << name;
  }
}

/// Of another host or user, for example.
TEST(PipeEnd, SendsMessagesWhereItCanNotMapWhatIsOffered) {
  scene other;
  pipe_streambuf out = other.writer({.timeout = 1s});
  other.say(pipe_said::ring, encode(detail::pipe_ring{4, 1U << 20U, pattern(100)}));
  std::vector<std::byte> came(piece);
  request receive = other.peer.start_receive(detail::pipe_of_data(), std::span(came));
  const std::vector<std::byte> sent = pattern(piece);
  EXPECT_EQ(out.sputn(reinterpret_cast<const char*>(sent.data()), piece), piece);
  EXPECT_EQ(out.pubsync(), 0) << out.error_message();
  EXPECT_FALSE(other.both.outcome(receive));
  EXPECT_EQ(came, sent);
  EXPECT_EQ(out.transfer_method(), transfer_method::message);
}

TEST(PipeEnd, WritesNothingToAReaderThatMakesNoSense) {
  for (const auto& [most, room] : {std::pair<std::uint64_t, std::uint64_t>{0, 0},
                                   {piece, piece - 1},
                                   {piece, ~std::uint64_t{0}},
                                   {~std::uint64_t{0}, ~std::uint64_t{0}}}) {
    scene other;
    other.say_hello(most, room);
    std::error_code ec;
    const pipe_streambuf out(other.both.pair.reader, std::move(other.both.sender),
                             std::ios_base::out, {}, ec);
    EXPECT_EQ(ec, errc::protocol_error);
    EXPECT_FALSE(out.is_open());
  }
}

TEST(PipeEnd, NamesTheVersionOfAReader) {
  scene other;
  other.say(pipe_said::hello, encode(detail::pipe_hello{.version = 7}));
  try {
    const pipe_streambuf out(other.both.pair.reader, std::move(other.both.sender),
                             std::ios_base::out);
    FAIL() << "it was opened";
  } catch (const error& failed) {
    EXPECT_EQ(failed.code(), errc::version_mismatch);
    EXPECT_NE(std::string(failed.what()).find("version 7"), std::string::npos) << failed.what();
  }
}

TEST(PipeEnd, WaitsForAReaderSoLong) {
  scene other;
  std::error_code ec;
  const pipe_streambuf out(other.both.pair.reader, std::move(other.both.sender), std::ios_base::out,
                           {.connect_timeout = 1s}, ec);
  EXPECT_EQ(ec, errc::timed_out);
}

TEST(PipeEnd, FailsAWriterWhoseReaderDiesOrFallsSilent) {
  for (const bool dies : {true, false}) {
    scene other;
    pipe_streambuf out = other.writer();
    if (dies) {
      other.both.pair.owner_process.kill();
    } else {
      other.both.pair.owner_process.stop();
    }
    EXPECT_EQ(write_all(out), errc::connection_reset);
    EXPECT_NE(out.error_message().find("having taken 0 of"), std::string::npos)
        << out.error_message();
    if (!dies) other.both.pair.owner_process.resume();
  }
}

TEST(PipeEnd, TellsAWriterThatItsReaderLeft) {
  scene other;
  pipe_streambuf out = other.writer({.timeout = 1s});
  EXPECT_EQ(write_all(out), errc::timed_out);
  other.say_count(pipe_said::left, 5);
  EXPECT_EQ(write_all(out), errc::broken_pipe);
  EXPECT_NE(out.error_message().find("having taken 5 of"), std::string::npos)
      << out.error_message();
}

}  // namespace
}  // namespace ucx::test
