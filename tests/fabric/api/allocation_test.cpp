// After warm-up an operation allocates nothing, on neither side.
#include <execinfo.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/replaced/replaced_new.hpp"
#include "support/transports/connected_pair.hpp"
#include "support/transports/message_pair.hpp"
#include "support/transports/network.hpp"
#include "ucx/async_pipe.hpp"
#include "ucx/client.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/listener.hpp"
#include "ucx/remote_file.hpp"
#include "ucx/server.hpp"
#include "ucx/stream.hpp"
#include "ucx/url.hpp"
#include "ucx/worker.hpp"

namespace {

/// Counts what any thread of this program allocates; UCX allocates by malloc, and is not counted.
std::atomic<std::uint64_t> allocations{0};
thread_local std::uint64_t allocations_here = 0;  // of this thread

/// From where the last one was, while somebody wants to know.
std::atomic<bool> traced{false};
std::array<void*, 24> trace = {};
std::atomic<int> trace_depth{0};

}  // namespace

namespace ucx::test {

bool may_allocate() noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  ++allocations_here;
  if (traced.load(std::memory_order_relaxed)) {
    trace_depth = ::backtrace(trace.data(), static_cast<int>(trace.size()));
  }
  return true;
}

namespace {

/// Returns how many allocations `rounds` calls of `operation` took, after as many before.
template <class Operation>
std::uint64_t of(int rounds, Operation operation) {
  for (int round = 0; round < rounds; ++round) operation();
  const std::uint64_t before = allocations.load();
  traced = true;
  for (int round = 0; round < rounds; ++round) operation();
  traced = false;
  const std::uint64_t made = allocations.load() - before;
  if (made > 0) {
    std::fputs("the last allocation:\n", stderr);
    ::backtrace_symbols_fd(trace.data(), trace_depth, STDERR_FILENO);
  }
  return made;
}

/// As `of`, where two threads take part: how many pieces are under way at once depends on how they
/// meet, so that a pool may still grow after many rounds. What each round allocates shows always.
template <class Operation>
std::uint64_t at_least_of(int rounds, Operation operation) {
  std::uint64_t least = of(rounds, operation);
  for (int again = 0; again < 5 && least > 0; ++again)
    least = std::min(least, of(rounds, operation));
  return least;
}

/// Ends the shared clients of cases before: they leave their servers on a thread of their own, and
/// what it allocates counts.
void end_lingering_clients() {
  client::set_shared_idle_timeout(std::chrono::seconds(0));
  client::set_shared_idle_timeout(std::chrono::seconds(10));
}

class Allocation : public testing::TestWithParam<pair_options> {
 protected:
  void SetUp() override {
    end_lingering_clients();
    if (const std::string why = pair_.why_not_forced(); !why.empty()) GTEST_SKIP() << why;
  }

  connected_pair pair_{GetParam()};
  memory_region owned_ = pair_.allocate(std::size_t{2} << 20U);
  remote_region region_ = pair_.open(owned_);
};

TEST_P(Allocation, OfTheLibraryIsCounted) {
  EXPECT_GE(of(1, [&] { const remote_region other = region_.share(); }), 1U);
}

TEST_P(Allocation, OfAReadIsNone) {
  for (const std::size_t size : {std::size_t{8}, std::size_t{1} << 16U, std::size_t{2} << 20U}) {
    std::vector<std::byte> into(size);
    EXPECT_EQ(at_least_of(100, [&] { region_.read_at(0, into); }), 0U) << size;
  }
}

TEST_P(Allocation, OfAWriteAndItsFlushIsNone) {
  for (const std::size_t size : {std::size_t{8}, std::size_t{1} << 16U, std::size_t{2} << 20U}) {
    const std::vector<std::byte> from = pattern(size);
    EXPECT_EQ(at_least_of(100,
                          [&] {
                            region_.write_at(0, from);
                            region_.flush();
                          }),
              0U)
        << size;
  }
}

TEST_P(Allocation, OfSeveralOperationsInFlightIsNone) {
  std::vector<std::byte> into(std::size_t{1} << 16U);
  std::vector<request> reads(16);
  EXPECT_EQ(at_least_of(50,
                        [&] {
                          for (std::size_t i = 0; i < reads.size(); ++i) {
                            reads[i] = region_.start_read_at(
                                i * 4096, std::span(into).subspan(i * 4096, 4096));
                          }
                          for (request& each : reads) each.wait();
                        }),
            0U);
}

TEST_P(Allocation, OfAStreamThatReadsAndWritesIsNone) {
  std::vector<char> bytes(std::size_t{96} << 10U);
  const auto size = static_cast<std::streamsize>(bytes.size());
  remote_streambuf buffer(region_, std::ios_base::in | std::ios_base::out,
                          {.buffer_size = std::size_t{64} << 10U});
  const auto pass = [&](auto&& move) {
    buffer.pubseekpos(0);
    for (std::size_t done = 0; done + bytes.size() <= region_.size(); done += bytes.size()) {
      ASSERT_EQ(move(), size);
    }
    ASSERT_EQ(buffer.pubsync(), 0);
  };
  EXPECT_EQ(at_least_of(20, [&] { pass([&] { return buffer.sgetn(bytes.data(), size); }); }), 0U);
  EXPECT_EQ(at_least_of(20, [&] { pass([&] { return buffer.sputn(bytes.data(), size); }); }), 0U);
}

INSTANTIATE_TEST_SUITE_P(Routes, Allocation,
                         testing::Values(pair_options{.over = route::tcp_by_address},
                                         pair_options{.over = route::shared_memory},
                                         pair_options{.over = route::mapped},
                                         pair_options{.over = route::borrowed}),
                         name_of_pair);

class MessageAllocation : public testing::TestWithParam<message_pair_options> {
 protected:
  void SetUp() override { end_lingering_clients(); }

  message_pair pair_{GetParam()};
};

constexpr std::array<std::size_t, 3> message_sizes{8, 1000, std::size_t{1} << 20U};

TEST_P(MessageAllocation, OfAMessageThatIsWaitedForIsNone) {
  for (const std::size_t size : message_sizes) {
    const std::vector<std::byte> bytes = pattern(size);
    std::vector<std::byte> into(size);
    EXPECT_EQ(at_least_of(size < 100'000 ? 200 : 20,
                          [&] {
                            request receive = pair_.receiver().start_receive(1, into);
                            request send = pair_.sender->start_send(1, bytes);
                            while (!receive.done() || !send.done()) pair_.sender_side().progress();
                            EXPECT_FALSE(receive.error());
                          }),
              0U)
        << size;
  }
}

TEST_P(MessageAllocation, OfAMessageThatNobodyWaitsForIsNone) {
  const std::vector<std::byte> bytes = pattern(1000);
  EXPECT_EQ(at_least_of(200,
                        [&] {
                          pair_.sender->send(1, bytes);
                          while (!pair_.receiver().take(1)) pair_.sender_side().progress();
                        }),
            0U);
}

TEST_P(MessageAllocation, OfAnActiveMessageIsNone) {
  std::atomic<std::uint64_t> came{0};
  pair_.receiver().on_message(1, [&](message) { ++came; });
  const std::vector<std::byte> bytes = pattern(64);
  std::uint64_t sent = 0;
  EXPECT_EQ(at_least_of(200,
                        [&] {
                          pair_.sender->send(active_message{1, bytes}, bytes);
                          ++sent;
                          while (came < sent) pair_.sender_side().progress();
                        }),
            0U);
  pair_.receiver().on_message(1, {});
}

TEST_P(MessageAllocation, OfAPostedMessageIsNone) {
  std::uint64_t last = 0;  // of the keys that came back
  pair_.sender->set_message_handlers({.on_sent = [&](std::uint64_t key, std::error_code ec) {
    EXPECT_FALSE(ec) << ec.message();
    last = key;
  }});
  const std::vector<std::byte> bytes = pattern(1000);
  std::vector<std::byte> into(bytes.size());
  std::uint64_t sent = 0;
  EXPECT_EQ(at_least_of(200,
                        [&] {
                          request receive = pair_.receiver().start_receive(1, into);
                          std::error_code ec;
                          pair_.sender->post_send(1, bytes, ++sent, {}, ec);
                          ASSERT_FALSE(ec) << ec.message();
                          while (!receive.done() || last != sent) pair_.sender_side().progress();
                        }),
            0U);
  pair_.sender->set_message_handlers({});
}

TEST_P(MessageAllocation, OfTheByteStreamIsNone) {
  pair_.sender->send(1, pattern(1));
  std::optional<message> hello;
  ASSERT_TRUE(pair_.until([&] { return (hello = pair_.receiver().take(1)).has_value(); }));
  endpoint back = hello->peer();
  for (const std::size_t size : message_sizes) {
    const std::vector<std::byte> bytes = pattern(size);
    std::vector<std::byte> into(size);
    EXPECT_EQ(at_least_of(size < 100'000 ? 200 : 20,
                          [&] {
                            request receive = back.start_stream_receive(into, stream_amount::all);
                            request send = pair_.sender->start_stream_send(bytes);
                            while (!receive.done() || !send.done()) pair_.sender_side().progress();
                            EXPECT_FALSE(receive.error());
                          }),
              0U)
        << size;
  }
}

INSTANTIATE_TEST_SUITE_P(Routes, MessageAllocation,
                         testing::Values(message_pair_options{.over = route::tcp_by_address},
                                         message_pair_options{.over = route::shared_memory}),
                         name_of_messages);

/// Both ends of a pipe on one worker, which this thread drives.
class PipeAllocation : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { end_lingering_clients(); }
  void open() {
    pipe_options options;
    options.context.share_memory = GetParam();
    std::optional<endpoint> accepted;
    const listener door(driven_, any_port_of_network(), [&](connection_request came) {
      accepted.emplace(driven_, std::move(came));
    });
    endpoint made(driven_, door.address());
    const request reads =
        async_pipe::start_open(driven_, std::move(*accepted), std::ios_base::in, in_, options);
    const request writes =
        async_pipe::start_open(driven_, std::move(made), std::ios_base::out, out_, options);
    while (!reads.done() || !writes.done()) driven_.progress();
    ASSERT_FALSE(writes.error()) << writes.description();
  }
  void read(std::size_t size) {
    for (std::size_t have = 0; have < size;) {
      std::size_t count = 0;
      const request some = in_.start_read(into_, count);
      while (!some.done()) driven_.progress();
      ASSERT_FALSE(some.error()) << some.description();
      ASSERT_GT(count, 0U) << "the pipe has ended";
      have += count;
    }
  }

  context here_{over_network()};
  worker driven_{here_, {.progress = progress_mode::external}};
  const std::vector<std::byte> bytes_ = pattern(100);
  std::vector<std::byte> into_ = pattern(10'000);
  async_pipe in_;
  async_pipe out_;
};

TEST_P(PipeAllocation, OfASmallWriteThatIsReadIsNone) {
  open();
  EXPECT_EQ(at_least_of(500,
                        [&] {
                          const request written = out_.start_write(bytes_);
                          const request flushed = out_.start_flush();
                          read(bytes_.size());
                          while (!flushed.done()) driven_.progress();
                          EXPECT_FALSE(flushed.error());
                        }),
            0U);
}

TEST_P(PipeAllocation, OfSmallWritesThatGoTogetherIsNone) {
  open();
  EXPECT_EQ(at_least_of(200,
                        [&] {
                          std::array<request, 20> written;
                          for (request& each : written) each = out_.start_write(bytes_);
                          const request flushed = out_.start_flush();
                          read(written.size() * bytes_.size());
                          while (!flushed.done()) driven_.progress();
                        }),
            0U);
}

INSTANTIATE_TEST_SUITE_P(, PipeAllocation, testing::Bool(), [](const auto& instance) {
  return std::string(instance.param ? "InPlaces" : "ByMessage");
});

/// Of a file of a store, whose disk thread may allocate: this thread is the client's.
TEST(FileAllocation, OfASmallWriteIsNoneAtTheClient) {
  end_lingering_clients();
  const temporary_directory folder;
  server serving(served_there());
  const publication store = serving.publish_store(folder / "", {.writable = true});
  worker driven(context(over_network()), {.progress = progress_mode::external});
  const auto finish = [&](const request& awaited) {
    while (!awaited.done()) driven.progress();
    EXPECT_FALSE(awaited.error()) << awaited.description();
  };
  client asking;
  finish(client::start_connect(driven, url(serving.url()), asking));
  remote_file_options options;
  options.wanted = access::write;
  options.create = creation::replace;
  remote_file file;
  finish(remote_file::start_open(asking, "file", options, file));
  const std::vector<std::byte> bytes = pattern(100);
  std::uint64_t at = 0;
  const auto write = [&] {
    finish(file.start_write_at(at, bytes));
    at += bytes.size();
  };
  for (int i = 0; i < 300; ++i) write();
  finish(file.start_sync());
  // A machine that stands still has a pool grow, or heartbeats sent.
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (int round = 0; round < 10 && least != 0; ++round) {
    const std::uint64_t before = allocations_here;
    for (int i = 0; i < 100; ++i) write();
    least = std::min<std::uint64_t>(least, allocations_here - before);
  }
  EXPECT_EQ(least, 0U);
  finish(file.start_close());
}

}  // namespace
}  // namespace ucx::test
