// Ends of pipes as requests, in virtual time.
#include "ucx/async_pipe.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <ios>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/bytes/untouched.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "ucx/error.hpp"
#include "ucx/request.hpp"
#include "ucx/url.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using std::ios_base;

/// A writer and a reader over one connection, whose workers this thread drives as loops would.
class AsyncPipe : public testing::Test {
 protected:
  static constexpr int rounds = 40000;
  static inline const pipe_options narrow{.window = pipe_options::min_window};

  explicit AsyncPipe(const simulated_pair_options& options = {}) : both_(options) {
    endpoint back = both_.back();
    reader_end_.emplace(std::move(back));
    // From here on this thread makes all progress.
    both_.pair.owner_process.on_pump({});
    both_.pair.reader_process.on_pump({});
  }
  worker& writing() { return both_.pair.reader; }
  worker& reading() { return both_.receiver(); }
  void round() {
    if (!both_.pair.reader_process.stopped()) writing().progress();
    if (!both_.pair.owner_process.stopped()) reading().progress();
    both_.network().advance(1ms);
  }
  void pass(int count) {
    for (int i = 0; i < count; ++i) round();
  }
  bool finish(const request& awaited) {
    for (int i = 0; i < rounds && !awaited.done(); ++i) round();
    EXPECT_TRUE(awaited.done()) << awaited.description();
    return awaited.done() && !awaited.error();
  }
  void succeed(const request& awaited) {
    EXPECT_TRUE(finish(awaited)) << awaited.description() << ": " << awaited.error().message();
  }
  void fail(const request& awaited, errc why) {
    finish(awaited);
    EXPECT_EQ(awaited.error(), why) << awaited.description();
  }
  request open_input(const pipe_options& options = {}) {
    return async_pipe::start_open(reading(), std::move(*reader_end_), ios_base::in, in_, options);
  }
  request open_output(const pipe_options& options = {}) {
    return async_pipe::start_open(writing(), std::move(both_.sender), ios_base::out, out_, options);
  }
  void open(const pipe_options& input = {}, const pipe_options& output = {}) {
    const request in = open_input(input);
    EXPECT_TRUE(in.done()) << "a reader waits for nobody";
    succeed(in);
    const request out = open_output(output);
    EXPECT_FALSE(out_.is_open());
    succeed(out);
    EXPECT_TRUE(in_.is_open());
    EXPECT_TRUE(out_.is_open());
  }
  /// Reads until the end, or a failure.
  std::vector<std::byte> read_all(std::error_code& ec) {
    std::vector<std::byte> all;
    std::vector<std::byte> piece(100'000);
    for (;;) {
      std::size_t count = 0;
      const request read = in_.start_read(piece, count);
      finish(read);
      ec = read.error();
      if (ec || count == 0) return all;
      all.insert(all.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(count));
    }
  }
  /// Writes more than the reader grants.
  request start_to_fill() { return out_.start_write(large_); }
  // A process that is silent counts as dead. Here it goes on at the end, to be cleared away.
  void kill_writer() { both_.pair.reader_process.stop(); }
  void kill_reader() { both_.pair.owner_process.stop(); }
  void TearDown() override {
    both_.pair.reader_process.resume();
    both_.pair.owner_process.resume();
    in_ = async_pipe();
    out_ = async_pipe();
    pass(3000);  // what was let go of in a round ends in rounds
  }

  const std::vector<std::byte> large_ = pattern(3'000'000, 1);
  std::vector<std::byte> into_ = blank(1000);
  std::size_t count_ = 77;
  simulated_messages both_;
  std::optional<endpoint> reader_end_;
  async_pipe in_;
  async_pipe out_;
};

TEST_F(AsyncPipe, CarriesBytesToTheEnd) {
  open(narrow);
  request written = out_.start_write(large_);
  request more = out_.start_write(std::span(large_).first(10));
  request closed = out_.start_close();
  EXPECT_FALSE(out_.is_open());
  std::error_code ec;
  std::vector<std::byte> all = read_all(ec);
  EXPECT_FALSE(ec) << ec.message();
  succeed(written);
  succeed(more);
  succeed(closed);
  std::vector<std::byte> sent = large_;
  sent.insert(sent.end(), large_.begin(), large_.begin() + 10);
  EXPECT_TRUE(all == sent);
  EXPECT_EQ(in_.received(), sent.size());
  EXPECT_EQ(out_.sent(), sent.size());
  std::size_t count = 1;
  succeed(in_.start_read(into_, count));
  EXPECT_EQ(count, 0U) << "the end stays";
  succeed(in_.start_close());
  EXPECT_FALSE(in_.is_open());
}

TEST_F(AsyncPipe, ReadsWhatIsThere) {
  open();
  const request read = in_.start_read(into_, count_);
  pass(10);
  EXPECT_FALSE(read.done());
  succeed(out_.start_write(std::span(large_).first(300)));
  pass(10);
  EXPECT_FALSE(read.done()) << "nothing was flushed";
  succeed(out_.start_flush());
  succeed(read);
  EXPECT_EQ(count_, 300U);
  EXPECT_TRUE(std::ranges::equal(std::span(into_).first(300), std::span(large_).first(300)));
  std::size_t none = 5;
  succeed(in_.start_read({}, none));
  EXPECT_EQ(none, 0U);
}

TEST_F(AsyncPipe, ReadsSeveralMessagesAtOnce) {
  open();
  for (std::size_t i = 0; i < 4; ++i) {
    succeed(out_.start_write(std::span(large_).subspan(i * 100, 100)));
    succeed(out_.start_flush());
  }
  pass(20);
  const request read = in_.start_read(into_, count_);
  EXPECT_TRUE(read.done()) << "nothing had to be waited for";
  EXPECT_EQ(count_, 400U);
  EXPECT_TRUE(std::ranges::equal(std::span(into_).first(400), std::span(large_).first(400)));
}

TEST_F(AsyncPipe, ServesReadsInTheirOrder) {
  open();
  std::vector<std::byte> second = blank(100);
  std::size_t of_second = 0;
  const request first = in_.start_read(std::span(into_).first(50), count_);
  const request next = in_.start_read(second, of_second);
  succeed(out_.start_write(std::span(large_).first(120)));
  succeed(out_.start_flush());
  succeed(first);
  succeed(next);
  EXPECT_EQ(count_, 50U);
  EXPECT_EQ(of_second, 70U);
  EXPECT_EQ(second.front(), large_[50]);
}

TEST_F(AsyncPipe, GoesBothWays) {
  const auto both = ios_base::in | ios_base::out;
  const request one = async_pipe::start_open(reading(), std::move(*reader_end_), both, in_);
  const request other = async_pipe::start_open(writing(), std::move(both_.sender), both, out_);
  succeed(one);
  succeed(other);
  std::vector<std::byte> there = blank(100);
  std::vector<std::byte> back = blank(100);
  std::size_t of_there = 0;
  std::size_t of_back = 0;
  const request read_there = in_.start_read(there, of_there);
  const request read_back = out_.start_read(back, of_back);
  succeed(out_.start_write(std::span(large_).first(100)));
  succeed(out_.start_close_output());
  succeed(read_there);
  EXPECT_FALSE(read_back.done());
  succeed(in_.start_write(std::span(large_).first(60)));
  succeed(in_.start_close_output());
  succeed(read_back);
  EXPECT_EQ(of_there, 100U);
  EXPECT_EQ(of_back, 60U);
  EXPECT_EQ(in_.start_write(back).error(), errc::closed);
  succeed(out_.start_read(back, of_back));
  EXPECT_EQ(of_back, 0U);
  const request closed_here = in_.start_close();
  const request closed_there = out_.start_close();
  succeed(closed_here);
  succeed(closed_there);
}

TEST_F(AsyncPipe, RefusesWhatMakesNoSense) {
  EXPECT_EQ(in_.start_read(into_, count_).error(), errc::closed);
  EXPECT_EQ(in_.start_write(into_).error(), errc::closed);
  EXPECT_EQ(in_.start_flush().error(), errc::closed);
  EXPECT_EQ(in_.start_close_output().error(), errc::closed);
  EXPECT_FALSE(in_.start_close().error());
  in_.abort();
  EXPECT_EQ(
      async_pipe::start_open(writing(), both_.pair.connect(), ios_base::in, in_, {.window = 1})
          .error(),
      errc::invalid_argument);
  EXPECT_EQ(async_pipe::start_open(writing(), both_.pair.connect(), {}, in_).error(),
            errc::invalid_argument);
  EXPECT_EQ(async_pipe::start_open(reading(), url("ucx://127.0.0.1:9"), ios_base::in, in_).error(),
            errc::bad_url);
  EXPECT_EQ(async_pipe::start_open(reading(), url("ucx+tcp://127.0.0.1:9/name"), ios_base::in, in_)
                .error(),
            errc::bad_configuration);
  open();
  EXPECT_EQ(in_.start_write(into_).error(), errc::permission_denied);
  EXPECT_EQ(out_.start_read(into_, count_).error(), errc::permission_denied);
  succeed(in_.start_flush());
  succeed(in_.start_close_output());
}

// Given up.

TEST_F(AsyncPipe, GoesOnBehindAReadThatIsCanceled) {
  open();
  request read = in_.start_read(into_, count_);
  pass(3);
  read.cancel();
  EXPECT_EQ(read.error(), errc::canceled);
  { const request dropped = in_.start_read(into_, count_); }
  in_.start_read(into_, count_).orphan(1);
  EXPECT_EQ(count_, 77U);
  succeed(out_.start_write(std::span(large_).first(10)));
  succeed(out_.start_flush());
  pass(10);
  EXPECT_EQ(into_, blank(1000)) << "nobody reads";
  succeed(in_.start_read(into_, count_));
  EXPECT_EQ(count_, 10U);
}

TEST_F(AsyncPipe, GoesOnBehindAReadThatIsLate) {
  open({.timeout = 50ms});
  fail(in_.start_read(into_, count_), errc::timed_out);
  EXPECT_EQ(count_, 77U);
  succeed(out_.start_write(std::span(large_).first(10)));
  succeed(out_.start_flush());
  succeed(in_.start_read(into_, count_));
  EXPECT_EQ(count_, 10U);
}

TEST_F(AsyncPipe, IsNotEndedBehindAWriteThatWasCutShort) {
  open(narrow);
  request written = start_to_fill();
  pass(50);
  EXPECT_FALSE(written.done()) << "the window is full";
  written.cancel();
  EXPECT_EQ(written.error(), errc::canceled);
  const request closed = out_.start_close();
  fail(closed, errc::canceled);
  std::error_code ec;
  const std::vector<std::byte> came = read_all(ec);
  EXPECT_EQ(ec, errc::connection_reset);
  EXPECT_TRUE(std::ranges::equal(came, std::span(large_).first(came.size())));
}

TEST_F(AsyncPipe, IsEndedWhereTheMissingBytesFollow) {
  open(narrow);
  std::optional written = start_to_fill();
  pass(50);
  written.reset();
  const request rest = out_.start_write(large_);
  const request closed = out_.start_close();
  std::error_code ec;
  const std::vector<std::byte> came = read_all(ec);
  EXPECT_FALSE(ec) << ec.message();
  EXPECT_GT(came.size(), large_.size());
  succeed(rest);
  succeed(closed);
}

TEST_F(AsyncPipe, TimesOutWhereNobodyReads) {
  open(narrow, {.timeout = 100ms});
  fail(start_to_fill(), errc::timed_out);
  const request flushed = out_.start_flush();
  fail(flushed, errc::timed_out);
}

TEST_F(AsyncPipe, KeepsTheBytesOfAFlushThatIsCanceled) {
  open(narrow);
  succeed(out_.start_write(std::span(large_).first(60'000)));
  succeed(out_.start_flush());
  succeed(out_.start_write(std::span(large_).subspan(60'000, 20'000)));
  request flushed = out_.start_flush();
  pass(20);
  EXPECT_FALSE(flushed.done());
  flushed.cancel();
  EXPECT_EQ(flushed.error(), errc::canceled);
  const request closed = out_.start_close();
  std::error_code ec;
  EXPECT_TRUE(std::ranges::equal(read_all(ec), std::span(large_).first(80'000)));
  EXPECT_FALSE(ec) << ec.message();
  succeed(closed);
}

TEST_F(AsyncPipe, IsGivenUpWithItsClose) {
  open(narrow);
  succeed(out_.start_write(std::span(large_).first(60'000)));
  succeed(out_.start_flush());
  succeed(out_.start_write(std::span(large_).first(20'000)));
  request closed = out_.start_close();
  pass(20);
  EXPECT_FALSE(closed.done());
  closed.cancel();
  EXPECT_EQ(closed.error(), errc::canceled);
  std::error_code ec;
  EXPECT_EQ(read_all(ec).size(), 60'000U);
  EXPECT_EQ(ec, errc::connection_reset);
}

TEST_F(AsyncPipe, EndsItsRequestsWhereItGoes) {
  open(narrow);
  const request read = in_.start_read(into_, count_);
  const request written = start_to_fill();
  const request flushed = out_.start_flush();
  pass(50);
  in_.abort();
  EXPECT_FALSE(in_.is_open());
  out_ = async_pipe();
  EXPECT_TRUE(written.done());
  EXPECT_EQ(written.error(), errc::closed);
  EXPECT_EQ(flushed.error(), errc::closed);
  EXPECT_TRUE(read.done());
  pass(100);
}

TEST_F(AsyncPipe, GoesOnClosingWithoutItsHandle) {
  open(narrow);
  succeed(out_.start_write(std::span(large_).first(60'000)));
  const request closed = out_.start_close();
  out_ = async_pipe();
  std::error_code ec;
  EXPECT_EQ(read_all(ec).size(), 60'000U);
  EXPECT_FALSE(ec);
  succeed(closed);
}

TEST_F(AsyncPipe, EndsReadsWithItsClose) {
  open();
  const request read = in_.start_read(into_, count_);
  const request closed = in_.start_close();
  EXPECT_EQ(read.error(), errc::closed);
  succeed(closed);
  EXPECT_EQ(in_.start_read(into_, count_).error(), errc::closed);
}

TEST_F(AsyncPipe, StopsFromAnyThread) {
  std::stop_source stop;
  open({.stop = stop.get_token()});
  const request read = in_.start_read(into_, count_);
  pass(3);
  EXPECT_FALSE(read.done());
  stop.request_stop();
  fail(read, errc::canceled);
  fail(in_.start_read(into_, count_), errc::canceled);
}

// The other end.

TEST_F(AsyncPipe, FailsWhereTheReaderLeaves) {
  open(narrow);
  const request written = start_to_fill();
  pass(50);
  succeed(in_.start_close());
  fail(written, errc::broken_pipe);
  fail(out_.start_flush(), errc::broken_pipe);
  fail(out_.start_close(), errc::broken_pipe);
}

TEST_F(AsyncPipe, FailsWhereTheWriterGivesUp) {
  open();
  const request read = in_.start_read(into_, count_);
  succeed(out_.start_write(std::span(large_).first(10)));
  succeed(out_.start_flush());
  succeed(read);
  const request next = in_.start_read(into_, count_);
  out_.abort();
  fail(next, errc::connection_reset);
  EXPECT_THAT(next.description(), testing::HasSubstr("after 10 bytes"));
}

TEST_F(AsyncPipe, FailsWhereTheWriterDies) {
  open();
  const request read = in_.start_read(into_, count_);
  pass(5);
  kill_writer();
  fail(read, errc::connection_reset);
  fail(in_.start_read(into_, count_), errc::connection_reset);
  succeed(in_.start_close());
}

TEST_F(AsyncPipe, FailsWhereTheReaderDies) {
  open(narrow);
  const request written = start_to_fill();
  const request flushed = out_.start_flush();
  const request closed = out_.start_close();
  pass(20);
  kill_reader();
  fail(written, errc::connection_reset);
  fail(flushed, errc::connection_reset);
  fail(closed, errc::connection_reset);
}

TEST_F(AsyncPipe, IsNotOpenedWhereNobodyReads) {
  fail(open_output({.connect_timeout = 200ms}), errc::timed_out);
  EXPECT_FALSE(out_.is_open());
}

TEST_F(AsyncPipe, IsNotOpenedBehindItsRequest) {
  std::optional opening = open_output();
  pass(5);
  opening.reset();
  EXPECT_FALSE(out_.is_open());
  succeed(open_input());
  const request read = in_.start_read(into_, count_);
  fail(read, errc::connection_reset);
}

TEST_F(AsyncPipe, IsNotOpenedWhereTheReaderDies) {
  const request opening = open_output();
  pass(5);
  kill_reader();
  fail(opening, errc::connection_reset);
}

// In every state.

enum class pipe_event { cancel_requests, drop_requests, drop_pipes, kill_reader, kill_writer };

struct pipe_moment {
  pipe_event what;
  int state;
};
void PrintTo(const pipe_moment& when, std::ostream* out) {
  *out << static_cast<int>(when.what) << " in round " << when.state;
}

class AsyncPipeInEveryState : public AsyncPipe, public testing::WithParamInterface<pipe_moment> {
 protected:
  void start_all() {
    started_.push_back(open_input(narrow));
    started_.push_back(open_output(narrow));
    started_.push_back(in_.start_read(into_, count_));
  }
  void go_on() {
    if (out_.is_open() && !writes_) {
      writes_ = true;
      started_.push_back(out_.start_write(large_));
      started_.push_back(out_.start_flush());
      started_.push_back(out_.start_close());
    }
    if (!in_.is_open() || !started_.back().done()) return;
    started_.push_back(in_.start_read(into_, count_));
  }
  void happen(pipe_event what) {
    switch (what) {
      case pipe_event::cancel_requests:
        for (request& each : started_) each.cancel();
        return;
      case pipe_event::drop_requests:
        return started_.clear();
      case pipe_event::drop_pipes:
        in_ = async_pipe();
        out_ = async_pipe();
        return;
      case pipe_event::kill_reader:
        return kill_reader();
      case pipe_event::kill_writer:
        return kill_writer();
    }
  }

  void TearDown() override {
    started_.clear();
    AsyncPipe::TearDown();
  }

  std::vector<request> started_;
  bool writes_ = false;
};

TEST_P(AsyncPipeInEveryState, EndsWithoutWaiting) {
  start_all();
  for (int i = 0; i < GetParam().state; ++i) {
    go_on();
    round();
  }
  const auto before = both_.network().now();
  const pipe_event what = GetParam().what;
  happen(what);
  EXPECT_LT(both_.network().now() - before, 1ms) << "nothing waited";
  for (const request& each : started_) {
    if (what == pipe_event::cancel_requests) {
      EXPECT_TRUE(each.done()) << each.description();
    } else if (what == pipe_event::drop_pipes) {
      finish(each);  // opening and closing go on
    }
  }
  if (what == pipe_event::kill_reader || what == pipe_event::kill_writer) {
    async_pipe& left = what == pipe_event::kill_reader ? out_ : in_;
    std::size_t count = 0;
    std::vector<std::byte> more = blank(100'000);
    for (int i = 0; i < 100; ++i) {
      const request next =
          what == pipe_event::kill_reader ? left.start_write(large_) : left.start_read(more, count);
      finish(next);
      if (next.error()) break;
    }
  }
  pass(50);
}

INSTANTIATE_TEST_SUITE_P(, AsyncPipeInEveryState, testing::ValuesIn([] {
                           std::vector<pipe_moment> all;
                           for (const pipe_event each :
                                {pipe_event::cancel_requests, pipe_event::drop_requests,
                                 pipe_event::drop_pipes, pipe_event::kill_reader,
                                 pipe_event::kill_writer}) {
                             for (int state = 0; state < 25; ++state) all.push_back({each, state});
                           }
                           return all;
                         }()));

// Coroutines.

struct pipe_task {
  struct promise_type {
    pipe_task get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
};

pipe_task send_all(worker& driven, endpoint over, std::span<const std::byte> bytes, bool& sent) {
  async_pipe out;
  co_await async_pipe::start_open(driven, std::move(over), ios_base::out, out);
  co_await out.start_write(bytes);
  co_await out.start_close();
  sent = true;
}

pipe_task receive_all(worker& driven, endpoint over, std::vector<std::byte>& all, bool& received) {
  async_pipe in;
  co_await async_pipe::start_open(driven, std::move(over), ios_base::in, in);
  std::vector<std::byte> piece(10'000);
  std::size_t count = 1;
  while (count > 0) {
    co_await in.start_read(piece, count);
    all.insert(all.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(count));
  }
  received = true;
}

TEST_F(AsyncPipe, IsUsedByCoroutines) {
  bool sent = false;
  bool received = false;
  std::vector<std::byte> all;
  send_all(writing(), std::move(both_.sender), large_, sent);
  receive_all(reading(), std::move(*reader_end_), all, received);
  for (int i = 0; i < rounds && !(sent && received); ++i) round();
  EXPECT_TRUE(sent);
  EXPECT_TRUE(received);
  EXPECT_TRUE(all == large_);
}

TEST_F(AsyncPipe, IsDestroyedInItsOwnHandler) {
  open(narrow);
  bool is_gone = false;
  request written = start_to_fill();
  request read = in_.start_read(into_, count_);
  read.then([&](std::error_code) {
    in_ = async_pipe();
    out_ = async_pipe();
    is_gone = true;
  });
  for (int i = 0; i < rounds && !is_gone; ++i) round();
  EXPECT_EQ(written.error(), errc::closed);
  pass(50);
}

/// No round follows the handler, which may let go of the worker, too.
TEST_F(AsyncPipe, IsFreedWhereItGoesInTheLastHandler) {
  for (const bool takes_worker : {false, true}) {
    SCOPED_TRACE(takes_worker);
    const auto freed = std::make_shared<int>(0);
    worker_options kept;
    kept.on_exception = [freed](const std::exception_ptr&) {};
    std::optional<worker> driven(std::in_place, both_.pair.owner_context, kept);
    kept = {};
    endpoint over(*driven, both_.pair.reader.address(), {.wait = connect_wait::none});
    succeed(async_pipe::start_open(*driven, std::move(over), ios_base::in, in_));
    std::optional read = in_.start_read(into_, count_);
    driven->post([&] {
      read.reset();
      in_ = async_pipe();
      if (takes_worker) driven.reset();
    });
    driven->progress();
    EXPECT_FALSE(read);
    driven.reset();
    EXPECT_EQ(freed.use_count(), 1) << "the worker lives on";
  }
}

}  // namespace
}  // namespace ucx::test
