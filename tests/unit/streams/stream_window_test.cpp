// How many bytes a stream has in flight: as many as the network carries, never more than it may.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "support/basics/effort.hpp"
#include "support/bytes/byte_sizes.hpp"
#include "support/bytes/repeated_memory.hpp"
#include "support/fake_ucp/flight_recorder.hpp"
#include "support/simulated/remote_memory.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "support/streams/stream_script.hpp"
#include "support/streams/streambuf_calls.hpp"
#include "ucx/error.hpp"
#include "ucx/stream.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr std::size_t bound = stream_options().window;
constexpr std::size_t call_size = mib;

struct path {
  nanoseconds round_trip;
  double gigabits;

  double bytes_per_second() const { return gigabits * 1e9 / 8; }
  double seconds() const { return std::chrono::duration<double>(round_trip).count(); }
  double product() const { return bytes_per_second() * seconds(); }
  /// Returns the best that `window` bytes in flight can do.
  double best(std::size_t window) const {
    return std::min(bytes_per_second(), static_cast<double>(window) / seconds());
  }
};

simulated_pair_options over(const path& taken, simulated_pair_options options = {}) {
  options.link.latency = taken.round_trip / 2;
  options.link.bytes_per_second = taken.bytes_per_second();
  // The window is the stream's alone, and what the bytes are matters to nobody here.
  options.link.socket_buffer = std::size_t{1} << 40U;
  options.link.weightless = true;
  return options;
}

/// A region far longer than its memory, over a path.
class long_region {
 public:
  explicit long_region(const simulated_pair_options& options)
      : pair(options),
        exposed(pair.owner_context, memory_.bytes(), access::read_write),
        connection(pair.connect()),
        region(connection, exposed.descriptor()),
        recorder(pair.network) {
    connection.wait_connected();
  }
  ~long_region() {
    for (const std::string& violation : pair.network.violations()) ADD_FAILURE() << violation;
  }
  long_region(const long_region&) = delete;
  long_region& operator=(const long_region&) = delete;

  detail::clock::time_point now() const { return pair.network.now(); }

  /// Reads or writes `calls` times.
  void move(remote_streambuf& buffer, std::ios_base::openmode mode, std::size_t calls) {
    for (std::size_t i = 0; i < calls; ++i) {
      const auto moved = mode == in ? buffer.sgetn(bytes_.data(), call_size)
                                    : buffer.sputn(bytes_.data(), call_size);
      ASSERT_EQ(moved, std::streamsize(call_size));
    }
  }
  /// The same for as long as the clock is before `end`.
  void move_until(detail::clock::time_point end, remote_streambuf& buffer,
                  std::ios_base::openmode mode) {
    while (now() < end) move(buffer, mode, 1);
  }
  /// Returns the bytes a second of so many calls.
  double rate(remote_streambuf& buffer, std::ios_base::openmode mode, std::size_t calls) {
    const auto begin = now();
    move(buffer, mode, calls);
    const double seconds = std::chrono::duration<double>(now() - begin).count();
    return static_cast<double>(calls * call_size) / seconds;
  }

 private:
  repeated_memory memory_{256};
  std::vector<char> bytes_ = std::vector<char>(call_size);

 public:
  simulated_pair pair;
  memory_region exposed;
  endpoint connection;
  remote_region region;
  flight_recorder recorder;
};

using cell = std::tuple<nanoseconds, double>;

std::string name_of_cell(const testing::TestParamInfo<cell>& info) {
  return std::to_string(std::get<0>(info.param).count() / 1000) + "us_" +
         std::to_string(static_cast<int>(std::get<1>(info.param))) + "Gbps";
}

class StreamWindowOverAPath : public testing::TestWithParam<cell> {
 protected:
  /// Twenty round trips after its first byte a stream is as fast as the path, or as its bound.
  void expect_full(std::ios_base::openmode mode) {
    long_region far(over(path_));
    remote_streambuf buffer(far.region, mode);
    far.move_until(far.now() + 20 * path_.round_trip, buffer, mode);
    // As many bytes as go round trip by round trip: where in one it begins makes no difference.
    const bool bound_limits = path_.product() > 0.9 * static_cast<double>(bound);
    const std::size_t calls = (bound_limits ? 8 * bound : 2 * bound) / call_size;
    const double reached = far.rate(buffer, mode, calls);
    EXPECT_GE(reached, 0.95 * path_.best(bound))
        << reached / path_.best(bound) << " of the best; window "
        << (mode == in ? buffer.statistics().read_window : buffer.statistics().write_window);
    EXPECT_LE(far.recorder.take_most(), bound);
    // Twice the product, four or eight blocks at least, and what the times on the wire add to it.
    const stream_statistics told = buffer.statistics();
    const double window = static_cast<double>(mode == in ? told.read_window : told.write_window);
    EXPECT_LE(window, 2.1 * path_.product() + (mode == in ? 4.0 : 8.0) * mib);
    EXPECT_LE(told.memory, bound + 2 * mib);
  }

  path path_{std::get<0>(GetParam()), std::get<1>(GetParam())};
};

TEST_P(StreamWindowOverAPath, FillsThePathWithReads) { expect_full(in); }

TEST_P(StreamWindowOverAPath, FillsThePathWithWrites) { expect_full(out); }

// At 13.4 ms and 10 Gb/s the product is the bound: there each byte counts.
INSTANTIATE_TEST_SUITE_P(Paths, StreamWindowOverAPath,
                         testing::Combine(testing::Values<nanoseconds>(1us, 10us, 100us, 1ms, 10ms,
                                                                       13400us, 50ms),
                                          testing::Values(1.0, 10.0, 100.0, 400.0)),
                         name_of_cell);

/// Plays what a program does that reads everything in calls of any size.
void read_by(std::size_t call, long_region& far, remote_streambuf& buffer, std::size_t bytes) {
  std::vector<char> into(call);
  for (std::size_t got = 0; got < bytes; got += call) {
    ASSERT_EQ(buffer.sgetn(into.data(), std::streamsize(call)), std::streamsize(call));
  }
  ASSERT_LE(far.recorder.take_most(), buffer.statistics().window);
}

constexpr path far_away{13400us, 10};  // its product is just below the bound

TEST(StreamWindow, IsFilledByCallsOfAnySize) {
  for (const std::size_t call : {std::size_t{100}, std::size_t{5000}, 100 * 1000 + 1UL, 5 * mib}) {
    long_region far(over(far_away));
    remote_streambuf buffer(far.region, in);
    read_by(call, far, buffer, 8 * bound);
    const auto begin = far.now();
    read_by(call, far, buffer, 4 * bound);
    const double seconds = std::chrono::duration<double>(far.now() - begin).count();
    EXPECT_GE(4.0 * bound / seconds, 0.95 * far_away.best(bound)) << call;
  }
}

TEST(StreamWindow, IsFilledBySmallWrites) {
  long_region far(over(far_away));
  remote_streambuf buffer(far.region, out);
  const std::string piece(5000, 'x');
  const auto write_bytes = [&](std::size_t bytes) {
    for (std::size_t sent = 0; sent < bytes; sent += piece.size()) {
      ASSERT_EQ(write(buffer, piece), std::streamsize(piece.size()));
    }
  };
  write_bytes(8 * bound);
  const auto begin = far.now();
  write_bytes(4 * bound);
  const double seconds = std::chrono::duration<double>(far.now() - begin).count();
  EXPECT_GE(4.0 * bound / seconds, 0.95 * far_away.best(bound));
  EXPECT_LE(far.recorder.take_most(), bound);
  EXPECT_LE(buffer.statistics().memory, bound + 2 * mib);
}

TEST(StreamWindow, IsFilledAndKeptWhereTheTransportMovesTheBytes) {
  for (const auto mode : {in, out}) {
    long_region far(over({2ms, 100}, over_hardware()));
    ASSERT_EQ(far.region.transfer_method(), transfer_method::rma);
    constexpr std::size_t window = 4 * mib;
    remote_streambuf buffer(far.region, mode, {.buffer_size = mib / 4, .window = window});
    far.move(buffer, mode, 32);
    const double best = path{2ms, 100}.best(window);
    EXPECT_GE(far.rate(buffer, mode, 32), 0.95 * best);
    EXPECT_LE(far.recorder.take_most(), window);
  }
}

TEST(StreamWindow, IsNeverExceededWhateverItIs) {
  for (const std::size_t window : {std::size_t{4096}, std::size_t{10'001}, mib / 4, mib, 3 * mib}) {
    long_region far(over({1ms, 10}));
    const stream_options options{.window = window};
    remote_streambuf reader(far.region, in, options);
    read_by(30'000, far, reader, 8 * window);
    EXPECT_EQ(far.recorder.in_flight(), reader.statistics().in_flight);
    reader.close();
    far.pair.network.advance(1s);
    EXPECT_LE(far.recorder.take_most(), window);
    EXPECT_EQ(far.recorder.in_flight(), 0U);
    remote_streambuf writer(far.region, out, options);
    const std::string text(30'000, 'x');
    for (std::size_t sent = 0; sent < 8 * window; sent += text.size()) write(writer, text);
    EXPECT_EQ(writer.statistics().window, window);
    EXPECT_LE(writer.statistics().in_flight, window);
    writer.close();
    EXPECT_LE(far.recorder.take_most(), window);
  }
}

TEST(StreamWindow, CoversWhatASeekLeftBehindAndBothDirections) {
  for (const bool hardware : {false, true}) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      std::mt19937_64 random(seed);
      simulated_pair_options options =
          over({5ms, 40}, hardware ? over_hardware() : simulated_pair_options());
      options.seed = seed;
      long_region far(options);
      far.pair.network.faults().reorder(0.2);
      constexpr std::size_t window = 4 * mib;
      remote_streambuf buffer(far.region, in | out, {.buffer_size = mib / 4, .window = window});
      std::vector<char> bytes(2 * mib);
      for (int step = 0; step < 40; ++step) {
        if (random() % 3 == 0) buffer.pubseekpos(std::streamoff(random() % (2000 * mib)));
        // The same bytes are everywhere: which of two writes to a place is the last one does not
        // show.
        const auto length = std::streamsize(random() % (random() % 2 == 0 ? 2 * mib : 5000));
        const auto moved = random() % 3 == 0 ? buffer.sputn(bytes.data(), length)
                                             : buffer.sgetn(bytes.data(), length);
        ASSERT_EQ(moved, length) << seed;
        ASSERT_LE(buffer.statistics().in_flight, window);
        ASSERT_LE(buffer.statistics().memory, window + mib / 2);
      }
      buffer.close();
      EXPECT_LE(far.recorder.take_most(), window) << seed;
    }
  }
}

TEST(StreamWindow, CountsWhatAFullOneLeftBehind) {
  for (const bool hardware : {false, true}) {
    long_region far(over({50ms, 10}, hardware ? over_hardware() : simulated_pair_options()));
    constexpr std::size_t window = 4 * mib;
    remote_streambuf buffer(far.region, in, {.buffer_size = mib / 4, .window = window});
    far.move(buffer, in, 40);
    EXPECT_EQ(buffer.statistics().read_window, window);
    for (int i = 1; i <= 5; ++i) {
      EXPECT_GE(far.recorder.in_flight(), window / 2);
      buffer.pubseekpos(std::streamoff(500 * mib * static_cast<std::size_t>(i)));
      far.move(buffer, in, 10);
      EXPECT_LE(far.recorder.take_most(), window);
      EXPECT_EQ(far.recorder.in_flight(), buffer.statistics().in_flight);
    }
  }
}

TEST(StreamWindow, ForgetsWhatWasLeftBehindOnceItHasCome) {
  for (const auto next : {in, out}) {
    long_region far(over({50ms, 10}));
    remote_streambuf buffer(far.region, in | out, {.window = 4 * mib});
    far.move(buffer, in, 40);
    buffer.pubseekpos(1000 * mib);
    far.move(buffer, next, 1);
    EXPECT_GT(buffer.statistics().in_flight, 2 * mib);
    far.pair.network.advance(1s);
    far.pair.reader.progress();
    far.move(buffer, next, 1);
    EXPECT_EQ(buffer.statistics().in_flight, far.recorder.in_flight());
    EXPECT_LE(buffer.statistics().in_flight, 3 * mib);
  }
}

TEST(StreamWindow, LeavesTheBytesRight) {
  for (std::uint64_t seed = 1; seed <= effort<std::uint64_t>(20, 4); ++seed) {
    std::mt19937_64 random(seed);
    simulated_pair_options options;
    options.link.latency = nanoseconds(std::int64_t{1} << (random() % 20));
    options.link.bytes_per_second = 1e8 * static_cast<double>(1 + random() % 500);
    options.seed = seed;
    remote_memory memory(sample_text(3 * mib, seed), options);
    memory.pair.network.faults().reorder(0.3);
    flight_recorder recorder(memory.pair.network);
    const std::size_t window = 8192 + random() % mib;
    remote_streambuf buffer(memory.region, in | out,
                            {.buffer_size = 1 + random() % 100'000, .window = window});
    std::string copy;
    while (copy.size() < memory.bytes.size()) {
      // Jitter: the wire is at times as slow as a third of what it was.
      memory.pair.network.link().bytes_per_second =
          options.link.bytes_per_second / static_cast<double>(1 + random() % 3);
      copy += read(buffer, random() % 200'000);
      ASSERT_LE(buffer.statistics().in_flight, window);
    }
    ASSERT_TRUE(same(copy, memory.bytes)) << seed;
    const std::string text = sample_text(3 * mib, seed + 1000);
    buffer.pubseekpos(0);
    for (std::size_t at = 0; at < text.size();) {
      const std::string piece = text.substr(at, random() % 200'000);
      ASSERT_EQ(write(buffer, piece), std::streamsize(piece.size()));
      at += piece.size();
    }
    EXPECT_EQ(buffer.pubsync(), 0);
    EXPECT_TRUE(same(memory.bytes, text)) << seed;
    EXPECT_LE(recorder.take_most(), window) << seed;
  }
}

TEST(StreamWindow, StandsJitter) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    for (const auto mode : {in, out}) {
      std::mt19937_64 random(seed);
      const path taken{4ms, 20};
      long_region far(over(taken));
      remote_streambuf buffer(far.region, mode);
      far.move_until(far.now() + 20 * taken.round_trip, buffer, mode);
      double wanted = 0;  // seconds that the wire needs for what is moved
      const auto begin = far.now();
      for (int i = 0; i < 100; ++i) {
        const double slowness = 1 + static_cast<double>(random() % 100) / 100;
        far.pair.network.link().bytes_per_second = taken.bytes_per_second() / slowness;
        far.move(buffer, mode, 1);
        wanted += static_cast<double>(call_size) * slowness / taken.bytes_per_second();
      }
      const double seconds = std::chrono::duration<double>(far.now() - begin).count();
      EXPECT_LE(wanted, 1.1 * seconds);
      EXPECT_GE(wanted, 0.9 * seconds) << seed;
      EXPECT_LE(far.recorder.take_most(), bound);
    }
  }
}

// Growing and shrinking

TEST(StreamWindow, OfAShortStreamCostsOneRoundTripAndLittleMore) {
  long_region far(over({10ms, 100}));
  remote_streambuf buffer(far.region, in);
  const auto begin = far.now();
  EXPECT_EQ(read(buffer, 500).size(), 500U);
  EXPECT_LT(far.now() - begin, 11ms);
  EXPECT_LE(far.recorder.take_most(), 1024U);
  EXPECT_EQ(read(buffer, 4000).size(), 4000U);
  EXPECT_LE(far.recorder.take_most(), 10'000U);
}

TEST(StreamWindow, StaysShutForRandomReads) {
  const path taken{5ms, 20};
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    std::mt19937_64 random(seed);
    long_region far(over(taken));
    remote_streambuf buffer(far.region, in);
    far.move(buffer, in, 64);  // the window has been large before
    buffer.pubsync();
    far.pair.network.advance(50ms);
    far.recorder.take_most();
    for (int i = 0; i < 100; ++i) {
      buffer.pubseekpos(std::streamoff(random() % (4000 * mib)));
      const auto begin = far.now();
      ASSERT_EQ(read(buffer, 100).size(), 100U);
      ASSERT_LT(far.now() - begin, taken.round_trip + 100us);
      ASSERT_LE(far.recorder.take_most(), 1024U);
    }
    buffer.pubseekpos(0);
    far.move_until(far.now() + 20 * taken.round_trip, buffer, in);
    EXPECT_GE(far.rate(buffer, in, 64), 0.95 * taken.best(bound));
  }
}

TEST(StreamWindow, ShrinksAndGivesMemoryBackOnASlowPath) {
  for (const auto mode : {in, out}) {
    long_region far(over({10ms, 10}));
    remote_streambuf buffer(far.region, mode);
    // Of less than a block, so that blocks of ours are used.
    std::vector<char> bytes(100'000);
    const auto some = [&](int calls) {
      for (int i = 0; i < calls; ++i) {
        const auto moved =
            mode == in ? buffer.sgetn(bytes.data(), 100'000) : buffer.sputn(bytes.data(), 100'000);
        ASSERT_EQ(moved, 100'000);
      }
    };
    some(1000);
    const auto window = [&] {
      const stream_statistics told = buffer.statistics();
      return mode == in ? told.read_window : told.write_window;
    };
    EXPECT_EQ(window(), bound);
    if (mode == in) {
      EXPECT_GT(buffer.statistics().memory, 10 * mib);
    }
    far.pair.network.link().bytes_per_second = 5e7;
    some(1000);
    EXPECT_LE(window(), (mode == in ? 6 : 8) * mib);
    EXPECT_LE(buffer.statistics().memory, (mode == in ? 10 : 13) * mib);
    EXPECT_LE(buffer.statistics().in_flight, (mode == in ? 6 : 8) * mib);
    far.pair.network.link().bytes_per_second = 1.25e9;
    some(1000);
    EXPECT_EQ(window(), bound);
  }
}

TEST(StreamWindow, FindsALongerWayOutWithinSeconds) {
  for (const auto mode : {in, out}) {
    const path longer{100ms, 0.8};
    long_region far(over({1ms, 0.8}));
    remote_streambuf buffer(far.region, mode, {.window = 32 * mib});
    far.move(buffer, mode, 100);
    far.pair.network.link().latency = longer.round_trip / 2;
    far.move_until(far.now() + 12s, buffer, mode);
    EXPECT_GE(far.rate(buffer, mode, 100), 0.95 * longer.best(32 * mib));
  }
}

TEST(StreamWindow, DoesNotCreepWhereItsOwnQueueIsTheDelay) {
  for (const auto mode : {in, out}) {
    const path slow{1ms, 0.1};
    long_region far(over(slow));
    remote_streambuf buffer(far.region, mode);
    far.move(buffer, mode, 600);  // for 50 seconds: the delay is measured again four times
    const stream_statistics told = buffer.statistics();
    EXPECT_EQ(told.read_window, 4 * mib);
    EXPECT_EQ(told.write_window, 8 * mib);
    EXPECT_GE(far.rate(buffer, mode, 200), 0.95 * slow.best(bound));
  }
}

TEST(StreamWindow, GoesOnFillingWhileItsUserIsSlow) {
  const path taken{20ms, 10};
  long_region far(over(taken));
  remote_streambuf buffer(far.region, in);
  const auto begin = far.now();
  constexpr int calls = 100;
  for (int i = 0; i < calls; ++i) {
    far.move(buffer, in, 1);
    far.pair.network.advance(8ms);
    far.pair.reader.progress();
  }
  // Eight milliseconds a call, and not a round trip besides.
  EXPECT_LT(far.now() - begin, calls * 8ms + 10 * taken.round_trip);
  // Whoever takes less needs less.
  EXPECT_LE(buffer.statistics().read_window, 8 * mib);
}

// What is told, and refused

TEST(StreamWindow, IsToldWithItsReasons) {
  const path taken{4ms, 8};
  long_region far(over(taken));
  remote_streambuf buffer(far.region, in);
  stream_statistics told = buffer.statistics();
  EXPECT_EQ(told.in_flight, 0U);
  EXPECT_EQ(told.memory, 0U);
  EXPECT_EQ(told.window, bound);
  EXPECT_EQ(told.read_window, 4 * mib);
  EXPECT_EQ(told.round_trip, 0ns);
  far.move(buffer, in, 64);
  told = buffer.statistics();
  EXPECT_EQ(told.in_flight, far.recorder.in_flight());
  EXPECT_NEAR(static_cast<double>(told.bytes_per_second), 1e9, 2e7);
  EXPECT_NEAR(std::chrono::duration<double>(told.round_trip).count(), 4e-3, 2e-4);
  EXPECT_NEAR(static_cast<double>(told.read_window), 8e6 + 2.0 * mib, 5e5);
  EXPECT_EQ(remote_streambuf().statistics().window, 0U);
}

TEST(StreamWindow, ThatNoStreamCanHaveIsRefused) {
  remote_memory memory("some bytes");
  for (const std::size_t window : {std::size_t{0}, std::size_t{4095}, ~std::size_t{0}}) {
    std::error_code ec;
    remote_streambuf buffer(memory.region, in, {.window = window}, ec);
    EXPECT_EQ(ec, errc::invalid_argument);
    EXPECT_FALSE(buffer.is_open());
    try {
      remote_streambuf(memory.region, in, {.window = window});
      FAIL() << "nothing was thrown";
    } catch (const ucx::error& refused) {
      EXPECT_NE(std::string(refused.what()).find("a window of " + std::to_string(window)),
                std::string::npos)
          << refused.what();
    }
  }
  remote_streambuf least(memory.region, in, {.window = stream_options::min_window});
  EXPECT_EQ(read(least, 10), "some bytes");
}

TEST(StreamWindow, TellsOfARefusedWriteWithoutAFlush) {
  remote_memory memory(std::string(64 * block, '.'));
  remote_streambuf buffer(memory.region, out, {.buffer_size = block, .window = 4 * block});
  const std::string text(block, 'x');
  for (int i = 0; i < 8; ++i) ASSERT_EQ(write(buffer, text), std::streamsize(block));
  memory.exposed.close();
  int taken = 0;
  while (taken < 20 && write(buffer, text) == std::streamsize(block)) ++taken;
  EXPECT_LE(taken, 5);
  EXPECT_EQ(buffer.error(), errc::revoked);
  EXPECT_GE(position(buffer), std::streamoff(4 * block));
  EXPECT_LE(position(buffer), std::streamoff(8 * block));
}

}  // namespace
}  // namespace ucx::test
