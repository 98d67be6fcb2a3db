// Ends of pipes that meet by URL without a thread of their own, and streams at the other end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <future>
#include <ios>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/bytes/pattern.hpp"
#include "support/streams/pipe_place.hpp"
#include "support/transports/network.hpp"
#include "ucx/async_pipe.hpp"
#include "ucx/context.hpp"
#include "ucx/error.hpp"
#include "ucx/pipe_broker.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/request.hpp"
#include "ucx/server.hpp"
#include "ucx/url.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using std::ios_base;

/// This thread drives the worker of its ends, as a loop would. A server introduces them.
class AsyncPipeMeeting : public pipe_place {
 protected:
  void finish(const request& awaited) {
    const auto limit = std::chrono::steady_clock::now() + 60s;
    while (!awaited.done() && std::chrono::steady_clock::now() < limit) {
      loop_.progress();
    }
    ASSERT_TRUE(awaited.done()) << awaited.description();
  }
  void succeed(const request& awaited) {
    finish(awaited);
    EXPECT_FALSE(awaited.error()) << awaited.description() << ": " << awaited.error().message();
  }
  /// Reads to the end, or to a failure, and returns how much came.
  std::size_t read_all(async_pipe& from, std::span<std::byte> piece) {
    std::size_t total = 0;
    for (std::size_t count = 1; count > 0; total += count) {
      const request read = from.start_read(piece, count);
      succeed(read);
      if (!read.done() || read.error()) break;
    }
    return total;
  }
  void fail(const request& awaited, errc why) {
    finish(awaited);
    EXPECT_EQ(awaited.error(), why) << awaited.description();
  }
  request open_end(ios_base::openmode mode, async_pipe& made, const pipe_options& options = {}) {
    return async_pipe::start_open(loop_, url(name()), mode, made, options);
  }

  const std::vector<std::byte> bytes_ = pattern(3'000'000, 1);
  context here_{over_network()};
  worker loop_{here_, {.progress = progress_mode::external}};
  async_pipe pipe_;
};

TEST_F(AsyncPipeMeeting, ReadsWhatAStreamWrites) {
  auto opened = open<opipestream>();
  succeed(open_end(ios_base::in, pipe_));
  auto writing = std::async(std::launch::async, [&] {
    opipestream out = opened.get();
    out.write(reinterpret_cast<const char*>(bytes_.data()), std::ssize(bytes_));
    out.close();
    return out.error_message();
  });
  std::vector<std::byte> all;
  std::vector<std::byte> piece(100'000);
  for (std::size_t count = 1; count > 0;) {
    request read = pipe_.start_read(piece, count);
    succeed(read);
    if (!read.done() || read.error()) break;
    all.insert(all.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(count));
  }
  EXPECT_TRUE(all == bytes_);
  succeed(pipe_.start_close());
  EXPECT_EQ(writing.get(), "");
}

TEST_F(AsyncPipeMeeting, WritesWhatAStreamReads) {
  auto opened = open<ipipestream>();
  succeed(open_end(ios_base::out, pipe_));
  auto reading = std::async(std::launch::async, [&] {
    ipipestream in = opened.get();
    std::string all = all_of(in);
    EXPECT_TRUE(in.eof()) << in.error_message();
    return all;
  });
  succeed(pipe_.start_write(bytes_));
  succeed(pipe_.start_close());
  EXPECT_TRUE(reading.get() == text_of(bytes_.size()));
}

TEST_F(AsyncPipeMeeting, BringsSeveralEndsOfOneWorkerTogether) {
  const pipe_options many{.writers = 3};
  std::vector<async_pipe> out(3);
  std::vector<request> opening;
  opening.push_back(open_end(ios_base::in, pipe_, many));
  for (async_pipe& each : out) opening.push_back(open_end(ios_base::out, each));
  for (const request& each : opening) succeed(each);
  std::vector<request> closing;
  for (async_pipe& each : out) {
    succeed(each.start_write(std::span(bytes_).first(1000)));
    closing.push_back(each.start_close());
  }
  std::vector<std::byte> piece(10'000);
  EXPECT_EQ(read_all(pipe_, piece), 3000U);
  for (const request& each : closing) succeed(each);
}

TEST_F(AsyncPipeMeeting, DropsAReaderThatIsTooSlow) {
  // Longer than this thread, which reads, is kept from running.
  const pipe_options broadcast{
      .readers = 2, .slow_reader = slow_reader_policy::drop, .slow_reader_timeout = 3s};
  const pipe_options narrow{.window = one_window};
  std::vector<async_pipe> in(2);
  std::vector<request> opening;
  opening.push_back(open_end(ios_base::out, pipe_, broadcast));
  for (async_pipe& each : in) opening.push_back(open_end(ios_base::in, each, narrow));
  for (const request& each : opening) succeed(each);
  const request written = pipe_.start_write(bytes_);
  const request closed = pipe_.start_close();
  std::vector<std::byte> piece(100'000);
  EXPECT_EQ(read_all(in[0], piece), bytes_.size());
  succeed(written);
  succeed(closed);
  std::size_t count = 1;
  request read;
  for (int i = 0; i < 10 && !read.error(); ++i) {
    read = in[1].start_read(piece, count);
    finish(read);
  }
  EXPECT_EQ(read.error(), errc::connection_reset);
}

TEST_F(AsyncPipeMeeting, SaysWhoDidNotCome) {
  // Longer than the server takes to answer: one that has not is what the error tells of.
  const request reading = open_end(ios_base::in, pipe_, {.connect_timeout = 3s});
  fail(reading, errc::timed_out);
  EXPECT_THAT(reading.description(), testing::HasSubstr("no writer came"));
  const request writing = open_end(ios_base::out, pipe_, {.connect_timeout = 3s});
  fail(writing, errc::timed_out);
  EXPECT_THAT(writing.description(), testing::HasSubstr("no reader came"));
}

TEST_F(AsyncPipeMeeting, NeedsABroker) {
  broker_.reset();
  fail(open_end(ios_base::in, pipe_), errc::not_supported);
  fail(open_end(ios_base::out, pipe_), errc::not_supported);
}

TEST_F(AsyncPipeMeeting, FindsNobodyWhereNoServerIs) {
  const std::string scheme = name().substr(0, name().find("://"));
  fail(async_pipe::start_open(loop_, url(scheme + "://127.0.0.1:9/name"), ios_base::in, pipe_),
       errc::connection_refused);
  EXPECT_FALSE(pipe_.is_open());
}

TEST_F(AsyncPipeMeeting, IsGivenUpInEachState) {
  for (int rounds = 0; rounds < 400; rounds = rounds * 2 + 1) {
    std::optional opening = open_end(rounds % 4 == 1 ? ios_base::out : ios_base::in, pipe_);
    for (int i = 0; i < rounds && !opening->done(); ++i) {
      loop_.progress();
    }
    if (rounds % 3 == 0) {
      opening->cancel();
      EXPECT_TRUE(opening->done()) << "it waits for nobody";
      EXPECT_EQ(opening->error(), errc::canceled);
    }
    opening.reset();
    EXPECT_FALSE(pipe_.is_open());
  }
  EXPECT_TRUE(soon([this] {
    loop_.progress();
    return broker_->waiting() == 0 || loop_.connections() == 0;
  }));
}

TEST_F(AsyncPipeMeeting, StopsOpening) {
  std::stop_source stop;
  const request opening = open_end(ios_base::in, pipe_, {.stop = stop.get_token()});
  EXPECT_TRUE(soon([this] {
    while (loop_.progress()) {
    }
    return broker_->waiting() > 0;
  }));
  stop.request_stop();
  fail(opening, errc::canceled);
}

struct meeting_task {
  struct promise_type {
    meeting_task get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
};

meeting_task send_at(worker& loop, url where, std::span<const std::byte> bytes, int& left) {
  async_pipe out;
  co_await async_pipe::start_open(loop, where, ios_base::out, out);
  co_await out.start_write(bytes);
  co_await out.start_close();
  --left;
}

meeting_task receive_at(worker& loop, url where, std::vector<std::byte>& all, int& left) {
  async_pipe in;
  co_await async_pipe::start_open(loop, where, ios_base::in, in);
  std::vector<std::byte> piece(100'000);
  for (std::size_t count = 1; count > 0;) {
    co_await in.start_read(piece, count);  // a failure is thrown
    all.insert(all.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(count));
  }
  co_await in.start_close();
  --left;
}

TEST(AsyncPipeOfAThread, IsUsedByCoroutinesOfOneLoop) {
  const context_options sockets{.transports = {"socket"}};
  server serving({.bind = "127.0.0.1:0", .context = sockets});
  const pipe_broker broker(serving);
  const url where(serving.url("pipe"));
  worker loop(context(sockets), {.progress = progress_mode::external});
  const std::vector<std::byte> bytes = pattern(3'000'000, 1);
  int left = 2;
  std::vector<std::byte> all;
  receive_at(loop, where, all, left);
  send_at(loop, where, bytes, left);
  std::stop_source over;
  const scheduled_call look = loop.call_every(1ms, [&] {
    if (left == 0) over.request_stop();
  });
  const scheduled_call limit = loop.call_after(60s, [&] { over.request_stop(); });
  loop.run(over.get_token());  // sleeps in between
  EXPECT_EQ(left, 0);
  EXPECT_TRUE(all == bytes);
}

TEST(AsyncPipeOfAThread, IsUsedByAnyThread) {
  const context here(over_network());
  server serving(served_there());
  const pipe_broker broker(serving);
  worker reader(here, {.progress = progress_mode::sleeping_thread});
  worker writer(here, {.progress = progress_mode::sleeping_thread});
  const url where(serving.url("pipe"));
  async_pipe in;
  async_pipe out;
  request reading = async_pipe::start_open(reader, where, ios_base::in, in);
  request writing = async_pipe::start_open(writer, where, ios_base::out, out);
  reading.wait();
  writing.wait();
  const std::vector<std::byte> bytes = pattern(1'000'000, 1);
  auto sending = std::async(std::launch::async, [&] {
    for (int i = 0; i < 20; ++i) out.start_write(bytes).wait();
    out.start_close().wait();
  });
  std::size_t total = 0;
  std::vector<std::byte> piece(300'000);
  for (std::size_t count = 1; count > 0; total += count) {
    in.start_read(piece, count).wait();  // a failure is thrown
  }
  EXPECT_EQ(total, 20 * bytes.size());
  sending.get();
}

}  // namespace
}  // namespace ucx::test
