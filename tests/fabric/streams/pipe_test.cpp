// Pipes over real transports: what is written at one end is read at the other, and how they end.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "support/basics/effort.hpp"
#include "support/basics/soon.hpp"
#include "support/streams/pipe_place.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"
#include "ucx/pipe_stream.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

template <class Stream>
concept receives = requires(const Stream& stream) {
  stream.received();
};
template <class Stream>
concept is_consumed = requires(Stream& stream) {
  stream.consumed();
};
template <class Stream>
concept closes_output = requires(Stream& stream) {
  stream.close_output();
};

// What a direction lacks does not compile.
static_assert(receives<ipipestream> && receives<pipestream> && !receives<opipestream>);
static_assert(is_consumed<opipestream> && is_consumed<pipestream> && !is_consumed<ipipestream>);
static_assert(closes_output<pipestream>);
static_assert(!closes_output<ipipestream> && !closes_output<opipestream>);

class Pipe : public pipe_place, public testing::WithParamInterface<pipe_route> {
 protected:
  Pipe() : pipe_place(GetParam()) {}
};

TEST_P(Pipe, CarriesBytesToTheEnd) {
  connect();
  for (const std::size_t size : {std::size_t{1}, std::size_t{1000}, std::size_t{300'000},
                                 std::size_t{5'000'000}, std::size_t{20'000'000}}) {
    const std::string sent = text_of(size, size);
    std::string came(size, '\0');
    const auto writing = std::async(std::launch::async, [&] {
      out_->write(sent.data(), static_cast<std::streamsize>(size));
      out_->flush();
    });
    in_->read(came.data(), static_cast<std::streamsize>(size));
    writing.wait();
    ASSERT_TRUE(*in_) << in_->error_message();
    ASSERT_TRUE(*out_) << out_->error_message();
    ASSERT_TRUE(came == sent) << size;
  }
  out_->close();
  EXPECT_TRUE(*out_) << out_->error_message();
  EXPECT_FALSE(out_->error());
  EXPECT_EQ(in_->get(), std::char_traits<char>::eof());
  EXPECT_TRUE(in_->eof());
  EXPECT_FALSE(in_->bad());
  in_->clear();
  in_->close();
  EXPECT_FALSE(in_->error());
  in_->get();
  out_->put('x');
  EXPECT_EQ(in_->error(), errc::closed);
  EXPECT_EQ(out_->error(), errc::closed);
}

TEST_P(Pipe, TellsHowItsBytesMove) {
  connect();
  const std::string sent = text_of(1'000'000);
  const auto writing = std::async(std::launch::async, [&] { *out_ << sent << std::flush; });
  std::string came(sent.size(), '\0');
  in_->read(came.data(), static_cast<std::streamsize>(came.size()));
  writing.wait();
  EXPECT_TRUE(came == sent);
  EXPECT_EQ(out_->rdbuf()->transfer_method(), wanted_way());
  EXPECT_EQ(in_->rdbuf()->transfer_method(), wanted_way());
  EXPECT_EQ(pipe_streambuf().transfer_method(), transfer_method::message);
}

/// Messages of every length, more of them than there are places, and a reader that is slow to
/// begin: what has no place goes as a message, and comes in order.
TEST_P(Pipe, KeepsTheOrderOfWhatGoesBothWays) {
  connect();
  std::string sent;
  for (std::size_t i = 0; i < 100; ++i) {
    const std::string next = text_of(i % 3 == 0 ? 100 : 20'000 + 997 * i, i);
    *out_ << next << std::flush;
    ASSERT_TRUE(*out_) << i << out_->error_message();
    sent += next;
  }
  auto reading = std::async(std::launch::async, [&] { return all_of(*in_); });
  out_->close();
  EXPECT_TRUE(*out_) << out_->error_message();
  EXPECT_TRUE(reading.get() == sent);
  EXPECT_FALSE(in_->bad());
}

TEST_P(Pipe, LetsEitherSideComeFirst) {
  for (const bool reader_first : {true, false}) {
    auto reading = reader_first ? open<ipipestream>() : std::future<ipipestream>();
    auto writing = reader_first ? std::future<opipestream>() : open<opipestream>();
    EXPECT_TRUE(soon([this] { return broker_->waiting() > 0; }));
    if (reader_first) {
      writing = open<opipestream>();
    } else {
      reading = open<ipipestream>();
    }
    ipipestream in = reading.get();
    opipestream out = writing.get();
    out << "either way\n" << std::flush;
    std::string line;
    EXPECT_TRUE(std::getline(in, line)) << in.error_message();
    EXPECT_EQ(line, "either way");
    EXPECT_EQ(broker_->waiting(), 0U);
  }
  EXPECT_EQ(broker_->introduced(), 2U);
}

TEST_P(Pipe, KeepsNamesApart) {
  auto first = open<ipipestream>({}, "a");
  auto second = open<ipipestream>({}, "b");
  opipestream to_second(name("b"));
  opipestream to_first(name("a"));
  to_first << "for a";
  to_second << "for b";
  to_first.close();
  to_second.close();
  ipipestream a = first.get();
  ipipestream b = second.get();
  EXPECT_EQ(all_of(a), "for a");
  EXPECT_EQ(all_of(b), "for b");
}

TEST_P(Pipe, SendsTheFirstByteAtOnce) {
  connect();
  out_->put('!').flush();
  EXPECT_EQ(in_->get(), '!');
  EXPECT_EQ(in_->rdbuf()->received(), 1U);
}

TEST_P(Pipe, EndsWithoutBytesToo) {
  connect();
  out_->close();
  EXPECT_EQ(in_->get(), std::char_traits<char>::eof());
  EXPECT_FALSE(in_->bad());
  EXPECT_FALSE(in_->error());
}

TEST_P(Pipe, ClosesWhenTheReadersProcessHasEverything) {
  connect();
  const std::string sent = text_of(100'000);
  *out_ << sent;
  out_->close();  // nobody has read yet
  EXPECT_TRUE(*out_) << out_->error_message();
  out_.reset();
  EXPECT_TRUE(all_of(*in_) == sent);
  EXPECT_FALSE(in_->error());
}

TEST_P(Pipe, HoldsTheWriterBackAtTheWindow) {
  connect({.window = one_window}, {.timeout = 100ms});
  const std::string much = text_of(one_window * 3);
  out_->write(much.data(), static_cast<std::streamsize>(much.size()));
  EXPECT_TRUE(out_->bad());
  EXPECT_EQ(out_->error(), errc::timed_out);
  EXPECT_LE(out_->rdbuf()->sent(), one_window);
  EXPECT_EQ(out_->consumed(), 0U);
  // It goes on where it was held back.
  const auto done = static_cast<std::size_t>(out_->rdbuf()->sent());
  out_->clear();
  auto rest = std::async(std::launch::async, [&] {
    std::size_t at = done;
    const auto may_go_on = [this] { return !out_->error() || out_->error() == errc::timed_out; };
    while (at < much.size() && may_go_on()) {
      out_->clear();
      const std::size_t step = std::min(one_window, much.size() - at);
      at += static_cast<std::size_t>(
          out_->rdbuf()->sputn(much.data() + at, static_cast<std::streamsize>(step)));
    }
    while (!out_->flush() && may_go_on()) out_->clear();
  });
  std::string came(much.size(), '\0');
  in_->read(came.data(), static_cast<std::streamsize>(came.size()));
  rest.wait();
  EXPECT_TRUE(came == much);
}

TEST_P(Pipe, TellsWhatTheReaderHasTaken) {
  connect();
  *out_ << text_of(1000) << std::flush;
  EXPECT_EQ(out_->rdbuf()->sent(), 1000U);
  EXPECT_EQ(out_->consumed(), 0U);
  skip(*in_, 1000);
  const auto waiting = std::async(std::launch::async, [&] { return in_->get(); });
  const auto limit = clock::now() + 20s;
  while (out_->consumed() < 1000 && clock::now() < limit) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(out_->consumed(), 1000U);
  out_->close();
}

TEST_P(Pipe, TellsWhatIsTakenBehindItsEnd) {
  connect();
  const std::string sent = text_of(std::size_t{4} << 20U);
  *out_ << sent;
  out_->rdbuf()->close_output();
  std::string came(sent.size(), '\0');
  in_->read(came.data(), static_cast<std::streamsize>(came.size()));
  EXPECT_TRUE(came == sent);
  const auto limit = clock::now() + 20s;
  while (out_->consumed() == 0 && clock::now() < limit) std::this_thread::sleep_for(1ms);
  EXPECT_GT(out_->consumed(), 0U);
}

TEST_P(Pipe, ShowsBadbitWhenTheWriterGivesUp) {
  connect();
  *out_ << "only the begin" << std::flush;
  try {
    const opipestream dying = std::move(*out_);
    throw std::runtime_error("the program fails");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(all_of(*in_), "only the begin");
  EXPECT_TRUE(in_->bad());
  EXPECT_FALSE(in_->eof());
  EXPECT_EQ(in_->error(), errc::connection_reset);
  in_->clear();
  EXPECT_EQ(in_->get(), std::char_traits<char>::eof());
  EXPECT_TRUE(in_->bad());
  EXPECT_FALSE(in_->eof());
  EXPECT_NE(in_->error_message().find("gave up"), std::string::npos) << in_->error_message();
  EXPECT_NE(in_->error_message().find("14 bytes"), std::string::npos) << in_->error_message();
}

TEST_P(Pipe, KeepsWhatCameBeforeAFailedRead) {
  connect();
  (*out_ << "some" << std::flush << " bytes").flush();
  out_->rdbuf()->abort();
  std::string into(100, '-');
  in_->read(into.data(), 100);
  EXPECT_TRUE(in_->bad());
  EXPECT_FALSE(in_->eof());
  EXPECT_EQ(in_->gcount(), 0);
  EXPECT_EQ(in_->rdbuf()->received(), 0U);
  in_->clear();
  EXPECT_EQ(all_of(*in_), "some bytes");
  EXPECT_TRUE(in_->bad());
  EXPECT_EQ(in_->rdbuf()->received(), 10U);
}

TEST_P(Pipe, DoesNotEndCleanlyWhereAWriteIsMissing) {
  connect({.window = one_window}, {.timeout = 50ms});
  const std::string much = text_of(one_window * 3);
  out_->write(much.data(), static_cast<std::streamsize>(much.size()));
  EXPECT_EQ(out_->error(), errc::timed_out);
  out_->close();
  EXPECT_TRUE(out_->fail());
  EXPECT_EQ(out_->error(), errc::timed_out);
  all_of(*in_);
  EXPECT_TRUE(in_->bad());
  EXPECT_FALSE(in_->eof());
}

TEST_P(Pipe, FailsTheWriterWhenTheReaderLeaves) {
  connect({.window = one_window});
  *out_ << text_of(1000) << std::flush;
  skip(*in_, 500);
  in_->close();
  const std::string much = text_of(one_window);
  while (*out_) out_->write(much.data(), static_cast<std::streamsize>(much.size())).flush();
  EXPECT_EQ(out_->error(), errc::broken_pipe);
  EXPECT_EQ(out_->error(), std::errc::broken_pipe);
  EXPECT_NE(out_->error_message().find("having taken 500 of"), std::string::npos)
      << out_->error_message();
  out_->close();
  EXPECT_TRUE(out_->fail());
}

TEST_P(Pipe, ForgivesAReaderThatLeavesWithEverything) {
  connect();
  *out_ << text_of(1000) << std::flush;
  skip(*in_, 1000);
  in_->close();
  out_->close();
  EXPECT_TRUE(*out_) << out_->error_message();
}

TEST_P(Pipe, StopsAReadFromAnotherThread) {
  std::stop_source stop;
  connect({.stop = stop.get_token()});
  std::jthread later([&] {
    std::this_thread::sleep_for(50ms);
    stop.request_stop();
  });
  const auto begin = clock::now();
  in_->get();
  EXPECT_LT(clock::now() - begin, 30s);
  EXPECT_TRUE(in_->bad());
  EXPECT_FALSE(in_->eof());
  EXPECT_EQ(in_->error(), errc::canceled);
}

TEST_P(Pipe, StopsAWriteFromAnotherThread) {
  std::stop_source stop;
  connect({.window = one_window}, {.stop = stop.get_token()});
  std::jthread later([&] {
    std::this_thread::sleep_for(50ms);
    stop.request_stop();
  });
  const std::string much = text_of(one_window * 3);
  out_->write(much.data(), static_cast<std::streamsize>(much.size()));
  EXPECT_TRUE(out_->bad());
  EXPECT_EQ(out_->error(), errc::canceled);
  out_->close();
  EXPECT_TRUE(out_->fail());
  all_of(*in_);
  EXPECT_EQ(in_->error(), errc::connection_reset);  // not the end: bytes are missing
}

/// A writer that has filled the window of a reader who takes nothing, and has some bytes more.
class BlockedPipe : public Pipe {
 protected:
  void fill() {
    connect({.window = one_window}, {.stop = stop_.get_token()});
    const std::string much = text_of(one_window);
    out_->write(much.data(), static_cast<std::streamsize>(much.size()));
    out_->flush();
    *out_ << text_of(1000);
    ASSERT_TRUE(*out_) << out_->error_message();
  }
  std::jthread stop_later() {
    return std::jthread([this] {
      std::this_thread::sleep_for(50ms);
      stop_.request_stop();
    });
  }
  void expect_stopped() {
    EXPECT_TRUE(out_->fail());
    EXPECT_EQ(out_->error(), errc::canceled);
    all_of(*in_);
    EXPECT_EQ(in_->error(), errc::connection_reset);  // not the end: bytes are missing
  }

  std::stop_source stop_;
};

TEST_P(BlockedPipe, HasItsFlushStoppedFromAnotherThread) {
  fill();
  const std::jthread later = stop_later();
  out_->flush();
  EXPECT_EQ(out_->error(), errc::canceled);
  out_->close();
  expect_stopped();
}

TEST_P(BlockedPipe, HasItsCloseStoppedFromAnotherThread) {
  fill();
  const std::jthread later = stop_later();
  out_->close();
  expect_stopped();
}

TEST_P(Pipe, GoesBothWays) {
  auto opened = open<pipestream>();
  pipestream here(name());
  pipestream there = opened.get();
  ASSERT_TRUE(here) << here.error_message();
  ASSERT_TRUE(there) << there.error_message();
  here << "question\n" << std::flush;
  std::string line;
  std::getline(there, line);
  EXPECT_EQ(line, "question");
  here.close_output();
  EXPECT_FALSE(std::getline(there, line));
  EXPECT_TRUE(there.eof());
  there.clear();
  there << "answer";
  there.close();
  EXPECT_TRUE(there) << there.error_message();
  EXPECT_EQ(all_of(here), "answer");
  EXPECT_TRUE(here.eof());
  here.clear();
  here.close();
  EXPECT_TRUE(here) << here.error_message();
}

/// Whenever the end of one direction comes, its reader hears of it, although the other one goes on.
TEST_P(Pipe, EndsOneDirectionWhenever) {
  const pipe_options bounded{.timeout = 20s};
  for (int round = 0; round < effort(30, 8); ++round) {
    auto opened = open<pipestream>(bounded);
    pipestream here = open<pipestream>(bounded).get();
    pipestream there = opened.get();
    ASSERT_TRUE(here && there) << here.error_message() << there.error_message();
    auto reading = std::async(std::launch::async, [&] { return all_of(there); });
    here << std::string(static_cast<std::size_t>(round), 'x');
    here.close_output();
    EXPECT_EQ(reading.get().size(), static_cast<std::size_t>(round));
    EXPECT_FALSE(there.bad()) << there.error_message();
    there.clear();
    there << "answer";
    there.close_output();
    EXPECT_EQ(all_of(here), "answer");
    EXPECT_FALSE(here.bad()) << here.error_message();
  }
}

TEST_P(Pipe, LetsBothEndsWriteBeforeEitherReads) {
  const pipe_options options{.timeout = 20s};
  auto opened = open<pipestream>(options);
  pipestream here(name(), options);
  pipestream there = opened.get();
  std::string sent = text_of(3'000'000);
  for (pipestream* each : {&here, &there}) {
    for (int i = 0; i < 5000; ++i) *each << '.' << std::flush;
    *each << sent << std::flush;
    ASSERT_TRUE(*each) << each->error_message();
  }
  sent.insert(0, 5000, '.');
  for (pipestream* each : {&here, &there}) {
    std::string came(sent.size(), '-');
    each->read(came.data(), static_cast<std::streamsize>(came.size()));
    ASSERT_TRUE(*each) << each->error_message();
    EXPECT_TRUE(came == sent);
  }
}

TEST_P(Pipe, MovesWithWhatIsBuffered) {
  connect();
  *out_ << "half";
  opipestream moved = std::move(*out_);
  moved << " and half\n" << std::flush;
  ipipestream in = std::move(*in_);
  EXPECT_EQ(in.get(), 'h');
  ipipestream again;
  again.swap(in);
  std::string line;
  std::getline(again, line);
  EXPECT_EQ(line, "alf and half");
  EXPECT_EQ(in_->error(), errc::closed);
}

TEST_P(Pipe, PutsBackOneByteAcrossMessages) {
  connect();
  out_->put('a').flush();
  out_->put('b').flush();
  EXPECT_EQ(in_->get(), 'a');
  EXPECT_EQ(in_->get(), 'b');
  EXPECT_TRUE(in_->unget());
  EXPECT_EQ(in_->get(), 'b');
  EXPECT_TRUE(in_->putback('B'));
  EXPECT_TRUE(in_->putback('A'));
  EXPECT_FALSE(in_->putback('?'));
  in_->clear();
  EXPECT_EQ(in_->get(), 'A');
  EXPECT_EQ(in_->get(), 'B');
  EXPECT_EQ(in_->tellg(), 2);
}

TEST_P(Pipe, LendsItsOwnMemory) {
  connect();
  const std::span<char> place = out_->rdbuf()->prepare();
  ASSERT_GE(place.size(), 5U);
  std::copy_n("bytes", 5, place.begin());
  out_->rdbuf()->commit(5);
  out_->flush();
  const std::span<const char> came = in_->rdbuf()->available();
  EXPECT_EQ(std::string(came.begin(), came.end()), "bytes");
  in_->rdbuf()->consume(2);
  EXPECT_EQ(in_->get(), 't');
  out_->close();
  skip(*in_, 2);
  EXPECT_TRUE(in_->rdbuf()->available().empty());
  in_->close();
  EXPECT_THROW(in_->rdbuf()->available(), error);
  EXPECT_THROW(out_->rdbuf()->prepare(), error);
}

TEST_P(Pipe, GoesOneWayOnly) {
  connect();
  EXPECT_EQ(out_->rdbuf()->sputc('x'), 'x');
  EXPECT_EQ(in_->rdbuf()->sputc('x'), std::char_traits<char>::eof());
  EXPECT_EQ(in_->error(), errc::permission_denied);
  EXPECT_THROW(out_->rdbuf()->sgetc(), error);
  EXPECT_EQ(out_->error(), errc::permission_denied);
}

/// Two workers of this process, connected by a listener.
struct own_connection {
  static listener_options awaited() {
    listener_options chosen;
    chosen.manual_accept = true;
    return chosen;
  }

  context shared;
  worker reads{shared, {.progress = progress_mode::sleeping_thread}};
  worker writes{shared, {.progress = progress_mode::sleeping_thread}};
  listener door{reads, socket_address("127.0.0.1:0"), awaited()};
  endpoint to_reader{writes, door.address(), {.wait = connect_wait::none}};
  endpoint to_writer{reads, door.accept().wait()};
};

/// Two ends that found each other in another way.
TEST_P(Pipe, RunsOverAConnectionOfTheProgram) {
  own_connection both;
  ipipestream in(both.reads, std::move(both.to_writer));
  opipestream out(both.writes, std::move(both.to_reader));
  ASSERT_TRUE(out) << out.error_message();
  const std::string sent = text_of(1'000'000);
  auto reading = std::async(std::launch::async, [&] { return all_of(in); });
  out << sent;
  out.close();
  EXPECT_TRUE(out) << out.error_message();
  EXPECT_TRUE(reading.get() == sent);
}

TEST_P(Pipe, IsStoppedWithoutHarmWhenItIsClosedAndItsWorkerGone) {
  std::stop_source stop;
  const context shared;
  const worker_options driven{.progress = progress_mode::sleeping_thread};
  auto reads = std::make_unique<worker>(shared, driven);
  auto writes = std::make_unique<worker>(shared, driven);
  listener_options awaited;
  awaited.manual_accept = true;
  std::optional<listener> door;
  door.emplace(*reads, socket_address("127.0.0.1:0"), std::move(awaited));
  endpoint to_reader(*writes, door->address(), {.wait = connect_wait::none});
  endpoint to_writer(*reads, door->accept().wait());
  ipipestream in(*reads, std::move(to_writer), {.stop = stop.get_token()});
  opipestream out(*writes, std::move(to_reader), {.stop = stop.get_token()});
  ASSERT_TRUE(out) << out.error_message();
  out.close();
  in.close();
  door.reset();
  reads.reset();
  writes.reset();
  stop.request_stop();
  EXPECT_FALSE(in.is_open());
}

/// Bytes of a writer's that are none: docs/reference/wire-format.md, "Pipes".
TEST(PipeInPlace, FailsWhereAWriterNamesAPlaceThatIsNone) {
  for (const std::uint32_t place : {2U, 3U, 0xffff'ffffU}) {
    for (const std::uint32_t length : {0U, 10U, 0xffff'ffffU}) {
      const bool is_one = place == 2 && length == 10;
      own_connection both;
      // A window of two messages: three places.
      ipipestream in(both.reads, std::move(both.to_writer), {.window = std::size_t{512} << 10U});
      const std::array<std::uint32_t, 2> said{place, length};
      both.to_reader.send(0x7563786964000009, std::as_bytes(std::span(said)));
      EXPECT_EQ(in.get(), is_one ? 0 : std::char_traits<char>::eof());
      EXPECT_EQ(in.bad(), !is_one);
      if (is_one) continue;
      EXPECT_EQ(in.error(), errc::protocol_error) << in.error_message();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, Pipe,
                         testing::Values(pipe_route::mapped, pipe_route::message,
                                         pipe_route::without_ip),
                         [](const auto& chosen) { return to_string(chosen.param); });
INSTANTIATE_TEST_SUITE_P(, BlockedPipe,
                         testing::Values(pipe_route::mapped, pipe_route::message,
                                         pipe_route::without_ip),
                         [](const auto& chosen) { return to_string(chosen.param); });

}  // namespace
}  // namespace ucx::test
