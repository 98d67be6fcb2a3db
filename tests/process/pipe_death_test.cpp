// Ends of pipes whose processes are killed: a reader never takes that for the end, a writer never
// for success, and where others were at the same pipe they are told, or go on.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <ios>
#include <string>
#include <system_error>
#include <utility>

#include "support/process/test_peer.hpp"
#include "support/streams/pipe_place.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/peer_address.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto soon_enough = 20s;

/// Waits until a first message of so many bytes is in this process. What a flush has sent is only
/// on its way, and is lost where UCX tells that its writer died before it reads what has arrived.
template <class Stream>
void wait_for_arrival(Stream& in, std::streamsize count) {
  const auto limit = clock::now() + soon_enough;
  while (in.rdbuf()->in_avail() == 0 && clock::now() < limit) {
  }
  EXPECT_EQ(in.rdbuf()->in_avail(), count) << in.error_message();
}

class PipeDeath : public pipe_place, public testing::WithParamInterface<pipe_route> {
 protected:
  PipeDeath() : pipe_place(GetParam()) {}

  pipe_options options() const {
    pipe_options chosen;
    chosen.context.share_memory = shares_memory();
    return chosen;
  }
  /// Has a process open its end. It answers when this one has opened the other.
  void begin(test_peer& peer, const std::string& direction) const {
    peer.say("pipe open " + direction + ' ' + name() + (shares_memory() ? " mapped" : " message"));
  }
  static void expect_open(test_peer& peer) {
    const std::string answer = peer.hear();
    EXPECT_TRUE(answer.starts_with("ok")) << answer;
  }
  template <class Stream>
  Stream meet(test_peer& peer, const std::string& direction) const {
    begin(peer, direction);
    Stream here(name(), options());
    EXPECT_TRUE(here) << here.error_message();
    expect_open(peer);
    return here;
  }

  /// `told`: how many bytes came of the writer that was lost.
  template <class Stream>
  static void expect_no_end(Stream& in, std::uint64_t told) {
    EXPECT_TRUE(in.bad());
    EXPECT_FALSE(in.eof());
    EXPECT_EQ(in.error(), errc::connection_reset) << in.error_message();
    const std::string count = "after " + std::to_string(told) + " bytes";
    EXPECT_NE(in.error_message().find(count), std::string::npos) << in.error_message();
  }
  /// Writes until it fails, which it has to do in a bounded time.
  template <class Stream>
  static void expect_writes_to_fail(Stream& out) {
    const std::string more = text_of(100'000);
    const auto limit = clock::now() + soon_enough;
    while (out.write(more.data(), static_cast<std::streamsize>(more.size())).flush() &&
           clock::now() < limit) {
    }
    EXPECT_TRUE(out.fail());
    EXPECT_EQ(out.error(), errc::connection_reset) << out.error_message();
  }
};

TEST_P(PipeDeath, OfAWriterIsNoEndForWhoWaits) {
  test_peer victim("tcp");
  auto in = meet<ipipestream>(victim, "out");
  victim.ask("pipe write 300000 1");
  std::string came(300'000, '\0');
  ASSERT_TRUE(in.read(came.data(), 300'000)) << in.error_message();
  EXPECT_TRUE(came == text_of(300'000));
  auto waiting = std::async(std::launch::async, [&] { return in.get(); });
  victim.process().kill();
  ASSERT_EQ(waiting.wait_for(soon_enough), std::future_status::ready);
  EXPECT_EQ(waiting.get(), std::char_traits<char>::eof());
  expect_no_end(in, in.received());
  in.clear();
  std::string line;
  EXPECT_FALSE(std::getline(in, line));
  expect_no_end(in, in.received());
}

TEST_P(PipeDeath, OfAWriterIsNoEndBehindWhatCame) {
  test_peer victim("tcp");
  auto in = meet<ipipestream>(victim, "out");
  victim.ask("pipe write 1000 1");
  wait_for_arrival(in, 1000);
  victim.process().kill();
  EXPECT_EQ(all_of(in), text_of(1000));
  expect_no_end(in, in.received());
}

TEST_P(PipeDeath, OfAWriterInTheMiddleKeepsWhatCameBefore) {
  test_peer victim("tcp");
  auto in = meet<ipipestream>(victim, "out");
  victim.ask("pipe pour");
  std::string came(20'000'000, '\0');
  ASSERT_TRUE(in.read(came.data(), 20'000'000)) << in.error_message();
  victim.process().kill();
  came += all_of(in);
  expect_no_end(in, in.received());
  EXPECT_EQ(in.received(), came.size());
  EXPECT_TRUE(came == text_of(came.size()));
}

TEST_P(PipeDeath, OfAWriterThatHadClosedIsNone) {
  test_peer victim("tcp");
  auto in = meet<ipipestream>(victim, "out");
  victim.ask("pipe write 100000 1");
  victim.ask("pipe end");
  victim.process().kill();
  EXPECT_TRUE(all_of(in) == text_of(100'000));
  EXPECT_TRUE(in.eof());
  EXPECT_FALSE(in.bad());
  EXPECT_FALSE(in.error()) << in.error_message();
}

TEST_P(PipeDeath, OfAReaderFailsAWriteThatWaits) {
  test_peer victim("tcp");
  auto out = meet<opipestream>(victim, "in");
  out << text_of(1000) << std::flush;
  EXPECT_EQ(victim.ask("pipe read 1000 1"), "yes");
  auto writing = std::async(std::launch::async, [&] { expect_writes_to_fail(out); });
  // It stands still with the window full.
  EXPECT_EQ(writing.wait_for(300ms), std::future_status::timeout);
  victim.process().kill();
  ASSERT_EQ(writing.wait_for(soon_enough), std::future_status::ready);
  EXPECT_NE(out.error_message().find("having taken"), std::string::npos) << out.error_message();
  out.clear();
  out.close();
  EXPECT_TRUE(out.fail()) << "not all of it is there";
}

TEST_P(PipeDeath, OfATwoWayPeerFailsBothDirections) {
  for (const bool reads_first : {true, false}) {
    SCOPED_TRACE(reads_first ? "reading" : "writing");
    test_peer victim("tcp");
    auto both = meet<pipestream>(victim, "both");
    both << text_of(1000) << std::flush;
    EXPECT_EQ(victim.ask("pipe read 1000 1"), "yes");
    victim.ask("pipe write 500 2");
    wait_for_arrival(both, 500);
    auto waiting = std::async(std::launch::async, [&] {
      if (reads_first) return all_of(both);
      expect_writes_to_fail(both);
      return std::string();
    });
    EXPECT_EQ(waiting.wait_for(300ms), std::future_status::timeout);
    victim.process().kill();
    ASSERT_EQ(waiting.wait_for(soon_enough), std::future_status::ready);
    std::string came = waiting.get();
    if (reads_first) {
      expect_no_end(both, 500);
      both.clear();
      expect_writes_to_fail(both);
    } else {
      both.clear();
      came = all_of(both);
      expect_no_end(both, 500);
    }
    EXPECT_EQ(came, text_of(500, 2));
  }
}

TEST_P(PipeDeath, OfATwoWayPeerThatHadEndedItsOutput) {
  test_peer victim("tcp");
  auto both = meet<pipestream>(victim, "both");
  victim.ask("pipe write 500 2");
  victim.ask("pipe end");
  EXPECT_EQ(all_of(both), text_of(500, 2));
  EXPECT_TRUE(both.eof());
  EXPECT_FALSE(both.bad());
  both.clear();
  victim.process().kill();
  expect_writes_to_fail(both);
  both.clear();
  EXPECT_EQ(both.get(), std::char_traits<char>::eof());
  EXPECT_TRUE(both.eof()) << "all of that direction was there";
  EXPECT_FALSE(both.bad());
}

/// A broadcast to two processes, one of which is killed.
class PipeBroadcastDeath : public PipeDeath {
 protected:
  opipestream start(slow_reader_policy slow) {
    for (test_peer* each : {&stays_, &victim_}) begin(*each, "in");
    pipe_options chosen = options();
    chosen.readers = 2;
    chosen.slow_reader = slow;
    opipestream out(name(), chosen);
    EXPECT_TRUE(out) << out.error_message();
    for (test_peer* each : {&stays_, &victim_}) expect_open(*each);
    out << text_of(1000) << std::flush;
    for (test_peer* each : {&stays_, &victim_}) EXPECT_EQ(each->ask("pipe read 1000 1"), "yes");
    return out;
  }

  test_peer stays_{"tcp"};
  test_peer victim_{"tcp"};
};

TEST_P(PipeBroadcastDeath, EndsAllWhereItWaitsForTheSlow) {
  opipestream out = start(slow_reader_policy::wait);
  stays_.say("pipe rest");
  victim_.process().kill();
  expect_writes_to_fail(out);
  out.clear();
  out.close();
  EXPECT_TRUE(out.fail());
  const std::string left = stays_.hear();
  const std::string why = std::to_string(make_error_code(errc::connection_reset).value());
  EXPECT_TRUE(left.starts_with("ok bad ") && left.ends_with(' ' + why)) << left;
}

TEST_P(PipeBroadcastDeath, IsNoMatterWhereTheSlowAreDropped) {
  opipestream out = start(slow_reader_policy::drop);
  stays_.say("pipe rest");
  victim_.process().kill();
  const std::string more = text_of(100'000);
  const auto limit = clock::now() + soon_enough;
  while (out.rdbuf()->readers() == 2 && clock::now() < limit) out << more << std::flush;
  EXPECT_EQ(out.rdbuf()->readers(), 1U);
  for (int i = 0; i < 100; ++i) out << more << std::flush;
  EXPECT_TRUE(out) << out.error_message();
  const auto sent = out.rdbuf()->sent();
  out.close();
  EXPECT_TRUE(out) << out.error_message();
  EXPECT_EQ(stays_.hear(), "ok eof " + std::to_string(sent - 1000));
}

TEST_P(PipeBroadcastDeath, OfEveryReaderFailsTheWriter) {
  opipestream out = start(slow_reader_policy::drop);
  victim_.process().kill();
  stays_.process().kill();
  expect_writes_to_fail(out);
  EXPECT_EQ(out.rdbuf()->readers(), 0U);
}

TEST_P(PipeDeath, OfOneOfSeveralWritersIsNoEnd) {
  for (const bool closes : {true, false}) {
    SCOPED_TRACE(closes);
    test_peer stays("tcp");
    test_peer victim("tcp");
    for (test_peer* each : {&stays, &victim}) begin(*each, "out");
    pipe_options chosen = options();
    chosen.writers = 2;
    ipipestream in(name(), chosen);
    ASSERT_TRUE(in) << in.error_message();
    for (test_peer* each : {&stays, &victim}) expect_open(*each);
    victim.ask("pipe write 500 2");
    wait_for_arrival(in, 500);
    stays.ask("pipe write 1000 1");
    victim.process().kill();
    if (closes) stays.ask("pipe end");
    const std::string came = all_of(in);
    expect_no_end(in, 500);
    EXPECT_EQ(came.size(), 1500U);
    EXPECT_NE(came.find(text_of(1000, 1)), std::string::npos);
    EXPECT_NE(came.find(text_of(500, 2)), std::string::npos);
    in.close();
    if (!closes) {  // who wrote on is told that nobody reads any more
      stays.say("pipe pour");
      std::string said = stays.hear();
      if (said.starts_with("ok")) said = stays.hear();
      EXPECT_TRUE(said.starts_with("error ")) << said;
    }
  }
}

/// A pipe over a connection by worker address to a process that is killed.
class PipeByAddressDeath : public testing::Test {
 protected:
  static context_options network() {
    context_options chosen;
    chosen.transports = {"tcp"};
    chosen.devices = {"lo"};
    return chosen;
  }
  /// Returns the end here, once the victim has its own.
  template <class Stream>
  Stream meet(const std::string& direction) {
    endpoint connection(here_, parse_worker_address(victim_.ask("address")));
    victim_.say("pipe_over " + direction);
    connection.send(1, {});
    Stream opened(here_, std::move(connection), {.timeout = 30s});
    EXPECT_TRUE(opened) << opened.error_message();
    const std::string answer = victim_.hear();
    EXPECT_TRUE(answer.starts_with("ok")) << answer;
    return opened;
  }

  const context context_{network()};
  worker here_{context_, {.progress = progress_mode::sleeping_thread}};
  test_peer victim_{"tcp"};
};

TEST_F(PipeByAddressDeath, OfAWriterIsNoEnd) {
  auto in = meet<ipipestream>("out");
  victim_.ask("pipe write 300000 1");
  std::string came(300'000, '\0');
  ASSERT_TRUE(in.read(came.data(), 300'000)) << in.error_message();
  EXPECT_TRUE(came == text_of(300'000));
  auto reading = std::async(std::launch::async, [&] { return in.get(); });
  victim_.process().kill();
  ASSERT_EQ(reading.wait_for(soon_enough), std::future_status::ready);
  EXPECT_EQ(reading.get(), std::char_traits<char>::eof());
  EXPECT_TRUE(in.bad());
  EXPECT_FALSE(in.eof());
  EXPECT_EQ(in.error(), errc::connection_reset) << in.error_message();
  EXPECT_NE(in.error_message().find("after 300000 bytes"), std::string::npos) << in.error_message();
}

TEST_F(PipeByAddressDeath, OfAWriterThatHadClosedIsNone) {
  auto in = meet<ipipestream>("out");
  victim_.ask("pipe write 100000 1");
  victim_.ask("pipe end");
  victim_.process().kill();
  EXPECT_TRUE(all_of(in) == text_of(100'000));
  EXPECT_TRUE(in.eof());
  EXPECT_FALSE(in.bad()) << in.error_message();
}

TEST_F(PipeByAddressDeath, OfAReaderFailsAWriteThatWaits) {
  auto out = meet<opipestream>("in");
  auto writing = std::async(std::launch::async, [&] {
    const std::string more = text_of(100'000);
    while (out.write(more.data(), static_cast<std::streamsize>(more.size())).flush()) {
    }
  });
  // It stands still with the window full.
  EXPECT_EQ(writing.wait_for(300ms), std::future_status::timeout);
  victim_.process().kill();
  ASSERT_EQ(writing.wait_for(soon_enough), std::future_status::ready);
  EXPECT_EQ(out.error(), errc::connection_reset) << out.error_message();
  out.clear();
  out.close();
  EXPECT_TRUE(out.fail()) << "not all of it is there";
}

TEST_F(PipeByAddressDeath, FailsBothDirections) {
  auto both = meet<pipestream>("both");
  both << text_of(1000) << std::flush;
  EXPECT_EQ(victim_.ask("pipe read 1000 1"), "yes");
  victim_.ask("pipe write 500 2");
  wait_for_arrival(both, 500);
  victim_.process().kill();
  EXPECT_EQ(all_of(both), text_of(500, 2));
  EXPECT_TRUE(both.bad());
  EXPECT_FALSE(both.eof());
  EXPECT_EQ(both.error(), errc::connection_reset) << both.error_message();
  both.clear();
  both.close();
  EXPECT_TRUE(both.fail());
}

std::string name_of(const testing::TestParamInfo<pipe_route>& chosen) {
  return to_string(chosen.param);
}

const auto every_route =
    testing::Values(pipe_route::mapped, pipe_route::message, pipe_route::without_ip);

INSTANTIATE_TEST_SUITE_P(, PipeDeath, every_route, name_of);
INSTANTIATE_TEST_SUITE_P(, PipeBroadcastDeath, every_route, name_of);

}  // namespace
}  // namespace ucx::test
