// A writer that may drop slow readers: which of them it takes for slow, in virtual time.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <ios>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "pipes/async_pipe_core.hpp"
#include "pipes/pipe_path.hpp"
#include "support/bytes/pattern.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "ucx/async_pipe.hpp"
#include "ucx/error.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/request.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using std::ios_base;

/// One writer and two readers, whose workers this thread drives as loops would.
class SlowPipeReaders : public testing::Test {
 protected:
  static constexpr int rounds = 40'000;
  static constexpr auto patience = 1500ms;

  SlowPipeReaders() {
    std::vector<endpoint> peers;
    peers.push_back(std::move(both_.sender));
    peers.push_back(both_.pair.connect());
    std::vector<endpoint> ends;
    for (endpoint& each : peers) {
      each.wait_connected();
      each.send(0xbac, {}, {.until = send_until::reusable});
      ends.push_back(both_.take(0xbac).peer());
    }
    // From here on this thread makes all progress.
    both_.pair.owner_process.on_pump({});
    both_.pair.reader_process.on_pump({});
    const pipe_options narrow{.window = pipe_options::min_window};
    for (std::size_t i = 0; i < in_.size(); ++i) {
      succeed(async_pipe::start_open(both_.receiver(), std::move(ends[i]), ios_base::in, in_[i],
                                     narrow));
    }
    pipe_options dropping{.readers = 2, .slow_reader = slow_reader_policy::drop};
    dropping.slow_reader_timeout = patience;
    auto path = std::make_unique<detail::pipe_path>();
    path->name = "pipe";
    path->driven = &both_.pair.reader;
    path->peers = std::move(peers);
    const auto core = std::make_shared<detail::async_pipe_core>(both_.pair.reader, path->name,
                                                                ios_base::out, dropping);
    succeed(core->start_open(out_, std::move(path)));
  }

  void pass(int count, bool writer_runs = true) {
    for (int i = 0; i < count; ++i) {
      if (writer_runs) both_.pair.reader.progress();
      both_.receiver().progress();
      both_.network().advance(1ms);
    }
  }
  void finish(const request& awaited) {
    for (int i = 0; i < rounds && !awaited.done(); ++i) pass(1);
    EXPECT_TRUE(awaited.done()) << awaited.description();
  }
  void succeed(const request& awaited) {
    finish(awaited);
    EXPECT_FALSE(awaited.error()) << awaited.description() << ": " << awaited.error().message();
  }
  /// Reads once, and returns what became of it; `count` is what came.
  std::error_code read(async_pipe& from, std::size_t& count) {
    count = 0;
    const request one = from.start_read(piece_, count);
    finish(one);
    return one.error();
  }
  /// Has both readers read to the end, a piece every so many rounds, and expects all of it.
  void expect_all(int rest) {
    std::array<std::size_t, 2> taken = taken_;
    std::array<bool, 2> ended{};
    for (int step = 0; step < 500 && !(ended[0] && ended[1]); ++step) {
      for (std::size_t i = 0; i < in_.size(); ++i) {
        if (ended[i]) continue;
        std::size_t count = 0;
        const std::error_code ec = read(in_[i], count);
        ASSERT_FALSE(ec) << "reader " << i << " behind " << taken[i] << ": " << ec.message();
        taken[i] += count;
        ended[i] = count == 0;
      }
      pass(rest);
    }
    for (const std::size_t each : taken) EXPECT_EQ(each, bytes_.size());
  }
  void TearDown() override {
    in_ = {};
    out_ = async_pipe();
    pass(3000);  // what was let go of in a round ends in rounds
  }

  const std::vector<std::byte> bytes_ = pattern(400'000, 1);
  std::vector<std::byte> piece_ = std::vector<std::byte>(40'000);
  std::array<std::size_t, 2> taken_{};
  simulated_messages both_;
  std::array<async_pipe, 2> in_;
  async_pipe out_;
};

/// Each of them holds the writer up, most of the time; neither for as long as the writer waits.
TEST_F(SlowPipeReaders, AreKeptWhereEachGoesOnInTime) {
  const request written = out_.start_write(bytes_);
  const request closed = out_.start_close();
  expect_all(200);
  succeed(written);
  succeed(closed);
}

TEST_F(SlowPipeReaders, AreKeptThroughAStallOfTheWritersProcess) {
  const request written = out_.start_write(bytes_);
  const request closed = out_.start_close();
  pass(50);  // their windows are full
  EXPECT_FALSE(written.done());
  for (std::size_t i = 0; i < in_.size(); ++i) {
    std::size_t count = 0;
    const request one = in_[i].start_read(piece_, count);
    EXPECT_TRUE(one.done()) << "it is there";
    EXPECT_FALSE(one.error()) << one.error().message();
    taken_[i] += count;
  }
  pass(2000, false);  // longer than a reader has, and not so long that the connections are lost
  expect_all(0);
  succeed(written);
  succeed(closed);
}

TEST_F(SlowPipeReaders, AreDroppedWhereTheyStandStill) {
  const auto begin = both_.network().now();
  const request written = out_.start_write(bytes_);
  const request closed = out_.start_close();
  std::size_t total = 0;
  for (std::size_t count = 1; count > 0; total += count) {
    const std::error_code ec = read(in_[0], count);
    ASSERT_FALSE(ec) << ec.message();
  }
  EXPECT_EQ(total, bytes_.size());
  EXPECT_GE(both_.network().now() - begin, patience);
  succeed(written);
  succeed(closed);
  std::error_code ec;
  std::size_t count = 1;
  for (int i = 0; i < 20 && !ec && count > 0; ++i) ec = read(in_[1], count);
  EXPECT_EQ(ec, errc::connection_reset) << ec.message();
}

}  // namespace
}  // namespace ucx::test
