// Ends of pipes without a thread, whose other ends are in processes that go on, or are killed.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <ios>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/bytes/pattern.hpp"
#include "support/process/test_peer.hpp"
#include "support/streams/pipe_place.hpp"
#include "support/transports/network.hpp"
#include "ucx/async_pipe.hpp"
#include "ucx/context.hpp"
#include "ucx/error.hpp"
#include "ucx/request.hpp"
#include "ucx/url.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using std::ios_base;

class AsyncPipeDeath : public pipe_place {
 protected:
  void finish(const request& awaited) {
    const auto limit = std::chrono::steady_clock::now() + 30s;
    while (!awaited.done() && std::chrono::steady_clock::now() < limit) loop_.progress();
    ASSERT_TRUE(awaited.done()) << awaited.description();
  }
  void meet(test_peer& peer, const std::string& direction, const pipe_options& options = {}) {
    peer.say("pipe open " + direction + ' ' + name() + " message");
    const request opening = async_pipe::start_open(
        loop_, url(name()), direction == "out" ? ios_base::in : ios_base::out, pipe_, options);
    finish(opening);
    ASSERT_FALSE(opening.error()) << opening.description();
    const std::string answer = peer.hear();
    ASSERT_TRUE(answer.starts_with("ok")) << answer;
  }
  /// Reads until so many bytes have come, the end, or a failure.
  std::size_t read(std::size_t most, std::error_code& ec) {
    std::size_t total = 0;
    for (std::size_t count = 1; count > 0 && total < most; total += count) {
      const request one = pipe_.start_read(piece_, count);
      finish(one);
      ec = one.error();
      if (ec) break;
    }
    return total;
  }

  std::vector<std::byte> piece_ = std::vector<std::byte>(100'000);
  context here_{over_network()};
  worker loop_{here_, {.progress = progress_mode::external}};
  async_pipe pipe_;
};

TEST_F(AsyncPipeDeath, IsNoneWhereTheWriterCloses) {
  test_peer writer("tcp");
  meet(writer, "out");
  writer.say("pipe write 3000000 1");
  std::error_code ec;
  EXPECT_EQ(read(3'000'000, ec), 3'000'000U);
  EXPECT_FALSE(ec) << ec.message();
  EXPECT_TRUE(writer.hear().starts_with("ok"));
  writer.say("pipe end");
  EXPECT_EQ(read(1, ec), 0U);
  EXPECT_FALSE(ec) << ec.message();
  EXPECT_TRUE(writer.hear().starts_with("ok"));
  const request closed = pipe_.start_close();
  finish(closed);
  EXPECT_FALSE(closed.error()) << closed.description();
}

TEST_F(AsyncPipeDeath, OfAWriterIsNoEnd) {
  test_peer victim("tcp");
  meet(victim, "out");
  std::size_t count = 77;
  const request waiting = pipe_.start_read(piece_, count);
  loop_.progress();
  EXPECT_FALSE(waiting.done());
  victim.process().kill();
  finish(waiting);
  EXPECT_EQ(waiting.error(), errc::connection_reset) << waiting.description();
  EXPECT_EQ(count, 77U);
}

TEST_F(AsyncPipeDeath, OfAWriterInTheMiddleKeepsWhatCameBefore) {
  test_peer victim("tcp");
  meet(victim, "out");
  victim.say("pipe pour");
  std::error_code ec;
  EXPECT_GE(read(20'000'000, ec), 20'000'000U);
  EXPECT_FALSE(ec);
  victim.process().kill();
  read(~std::size_t{0}, ec);
  EXPECT_EQ(ec, errc::connection_reset);
}

TEST_F(AsyncPipeDeath, OfAReaderEndsWritesAndClosing) {
  test_peer victim("tcp");
  meet(victim, "in");
  const std::vector<std::byte> large = pattern(30'000'000, 1);
  const request written = pipe_.start_write(large);
  const request closed = pipe_.start_close();
  for (int i = 0; i < 1000; ++i) loop_.progress();
  EXPECT_FALSE(written.done()) << "nobody reads";
  victim.process().kill();
  finish(written);
  finish(closed);
  EXPECT_EQ(written.error(), errc::connection_reset) << written.description();
  EXPECT_EQ(closed.error(), errc::connection_reset) << closed.description();
}

TEST_F(AsyncPipeDeath, OfWhoIsAwaitedEndsOpening) {
  test_peer victim("tcp");
  victim.say("pipe open out " + name() + " message");
  ASSERT_TRUE(soon([this] {
    loop_.progress();
    return broker_->waiting() > 0;
  }));
  victim.process().kill();
  const request opening =
      async_pipe::start_open(loop_, url(name()), ios_base::in, pipe_, {.connect_timeout = 3s});
  finish(opening);
  EXPECT_EQ(opening.error(), errc::timed_out) << opening.description();
  EXPECT_FALSE(pipe_.is_open());
}

TEST_F(AsyncPipeDeath, OfNobodyFollowsAReadThatIsGivenUp) {
  test_peer writer("tcp");
  meet(writer, "out");
  std::size_t count = 77;
  request waiting = pipe_.start_read(piece_, count);
  for (int i = 0; i < 100; ++i) loop_.progress();
  waiting.cancel();
  EXPECT_TRUE(waiting.done()) << "it waits for nobody";
  EXPECT_EQ(waiting.error(), errc::canceled) << waiting.description();
  EXPECT_EQ(count, 77U);
  writer.say("pipe write 100000 4");
  std::error_code ec;
  const request one = pipe_.start_read(piece_, count);
  finish(one);
  ASSERT_FALSE(one.error()) << one.description();
  EXPECT_TRUE(holds_pattern(std::span(piece_).first(count), 4)) << "a byte was lost";
  EXPECT_EQ(count + read(100'000 - count, ec), 100'000U);
  EXPECT_TRUE(writer.hear().starts_with("ok"));
}

TEST_F(AsyncPipeDeath, OfAPipeFollowsAWriteThatIsGivenUp) {
  test_peer reader("tcp");
  meet(reader, "in");
  const std::vector<std::byte> large = pattern(30'000'000, 1);
  reader.process().stop();
  request written = pipe_.start_write(large);
  for (int i = 0; i < 1000; ++i) loop_.progress();
  EXPECT_FALSE(written.done()) << "nobody reads";
  written.cancel();
  EXPECT_TRUE(written.done()) << "it waits for nobody";
  EXPECT_EQ(written.error(), errc::canceled) << written.description();
  const request closed = pipe_.start_close();
  reader.process().resume();
  finish(closed);
  EXPECT_EQ(closed.error(), errc::canceled) << closed.description();
  const std::string rest = reader.ask("pipe rest");
  EXPECT_TRUE(rest.starts_with("bad")) << "a part passed for the whole: " << rest;
}

TEST_F(AsyncPipeDeath, OfAPipeFollowsAClosingThatIsGivenUp) {
  test_peer reader("tcp");
  meet(reader, "in");
  const std::vector<std::byte> large = pattern(30'000'000, 1);
  reader.process().stop();
  const request written = pipe_.start_write(large);
  request closed = pipe_.start_close();
  for (int i = 0; i < 1000; ++i) loop_.progress();
  EXPECT_FALSE(closed.done()) << "nobody reads";
  closed.cancel();
  EXPECT_TRUE(closed.done()) << "it waits for nobody";
  EXPECT_EQ(closed.error(), errc::canceled) << closed.description();
  finish(written);
  EXPECT_TRUE(written.error());
  reader.process().resume();
  const std::string rest = reader.ask("pipe rest");
  EXPECT_TRUE(rest.starts_with("bad")) << "a part passed for the whole: " << rest;
}

}  // namespace
}  // namespace ucx::test
