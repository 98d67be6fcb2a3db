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

#include "pipe_frame.hpp"
#include "support/simulated_messages.hpp"
#include "ucx/error.hpp"
#include "ucx/pipe_streambuf.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using detail::pipe_said;

constexpr std::size_t piece = std::size_t{16} << 10U;
constexpr std::size_t window = pipe_options::least_window;

/// A connection whose one side is a pipe's, and whose other side says what the test wants.
struct scene {
  void say(pipe_said what, std::span<const std::byte> bytes) {
    peer.post_send(detail::pipe_tag(what), bytes, 0, unused, {.memory = send_memory::copied});
    both.settle();
  }
  void say_data(std::size_t size) { say(pipe_said::data, pattern(size)); }
  void say_end(std::uint64_t total, errc status = {}) {
    say(pipe_said::end, encode(detail::pipe_end{total, static_cast<std::uint32_t>(status)}));
  }
  void say_hello(std::uint64_t most = piece, std::uint64_t room = window) {
    say(pipe_said::hello, encode(detail::pipe_hello{.piece = most, .window = room}));
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
  EXPECT_EQ(out.sent(), window);
  other.say_count(pipe_said::taken, piece);
  EXPECT_EQ(write_all(out), errc::timed_out);
  EXPECT_EQ(out.sent(), window + piece);
  EXPECT_EQ(out.consumed(), piece);
  EXPECT_EQ(other.both.take(detail::pipe_tag(pipe_said::data)).length(), piece);
}

TEST(PipeEnd, RefusesWhatNoReaderMaySay) {
  const std::vector<breach> breaches{
      {"more than was sent", [](scene& self) { self.say_count(pipe_said::taken, window + 1); }},
      {"less than before",
       [](scene& self) {
         self.say_count(pipe_said::taken, piece);
         self.say_count(pipe_said::taken, piece - 1);
       }},
      {"a second hello", [](scene& self) { self.say_hello(); }},
      {"a count too short", [](scene& self) { self.say(pipe_said::taken, pattern(7)); }},
      {"a count too long", [](scene& self) { self.say(pipe_said::taken, pattern(100)); }},
      {"what nobody says", [](scene& self) { self.say(pipe_said{20}, pattern(8)); }},
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
                           {.meeting = 1s}, ec);
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
