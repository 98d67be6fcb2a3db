// Withdrawing memory while peers use it: when close() returns, it belongs to its owner again.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "support/basics/effort.hpp"
#include "support/bytes/pattern.hpp"
#include "support/transports/connected_pair.hpp"
#include "ucx/error.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr std::size_t withdrawn_size = 2U << 20U;
constexpr std::byte reused{0xDD};

class Revocation : public testing::TestWithParam<pair_options> {
 protected:
  connected_pair pair_{GetParam()};
};

TEST_P(Revocation, EndsReadsWithAllTheirBytesOrWithNone) {
  const sampled moments(0, 3);
  for (int round = moments.first; round < 12; round += moments.step) {
    SCOPED_TRACE(round);
    std::vector<std::byte> memory = pattern(withdrawn_size, 1);
    std::optional<memory_region> owned(std::in_place, *pair_.owner_context, memory, access::read);
    remote_region region = pair_.open(*owned);
    std::vector<std::vector<std::byte>> into(8, std::vector<std::byte>(withdrawn_size));
    std::vector<request> reads;
    for (std::vector<std::byte>& each : into) reads.push_back(region.start_read_at(0, each));
    std::jthread closes([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(300 * round));
      owned->close();
      // From here on the memory is the owner's: what it does with it shows in no read.
      std::fill(memory.begin(), memory.end(), reused);
    });
    for (std::size_t i = 0; i < reads.size(); ++i) {
      std::error_code ec;
      reads[i].wait(ec);
      if (ec) {
        EXPECT_EQ(ec, errc::revoked);
      } else {
        EXPECT_TRUE(holds_pattern(into[i], 1)) << "read " << i;
      }
    }
    closes.join();
    std::error_code ec;
    region.read_at(0, into[0], {}, ec);
    EXPECT_EQ(ec, errc::revoked);
  }
}

TEST_P(Revocation, KeepsWritesOutOfMemoryThatWasGivenBack) {
  const sampled moments(1, 3);
  for (int round = moments.first; round < 12; round += moments.step) {
    SCOPED_TRACE(round);
    std::vector<std::byte> memory(withdrawn_size);
    std::optional<memory_region> owned(std::in_place, *pair_.owner_context, memory, access::write);
    remote_region region = pair_.open(*owned);
    const std::vector<std::byte> from = pattern(withdrawn_size, 2);
    std::vector<request> writes;
    for (int i = 0; i < 8; ++i) writes.push_back(region.start_write_at(0, from));
    std::jthread closes([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(300 * round));
      owned->close();
      std::fill(memory.begin(), memory.end(), reused);
    });
    for (request& write : writes) {
      std::error_code ec;
      write.wait(ec);
      EXPECT_TRUE(!ec || ec == errc::revoked) << ec;
    }
    std::error_code ec;
    region.flush({}, ec);
    EXPECT_TRUE(!ec || ec == errc::revoked) << ec;
    closes.join();
    EXPECT_TRUE(all_bytes_are(memory, reused));
  }
}

/// The owner answers by messages: what a device does with a key is its own affair.
pair_options answering(route over, progress_mode owner, progress_mode reader) {
  return {over, owner, reader, {}, {}, false, true};
}

INSTANTIATE_TEST_SUITE_P(
    Messages, Revocation,
    testing::Values(answering(route::tcp_by_address, progress_mode::sleeping_thread,
                              progress_mode::caller),
                    answering(route::tcp_by_address, progress_mode::polling_thread,
                              progress_mode::sleeping_thread),
                    answering(route::tcp_by_listener, progress_mode::sleeping_thread,
                              progress_mode::polling_thread)),
    name_of_pair);

TEST(RevocationOfSilentPeers, DropsAPeerThatDoesNotTakeItsAnswers) {
  pair_options options;
  options.over = route::tcp_by_listener;
  options.owner_defaults.heartbeat_timeout = 1s;
  connected_pair pair(options);
  std::vector<std::byte> memory = pattern(effort(64U << 20U, 24U << 20U), 1);
  std::optional<memory_region> owned(std::in_place, *pair.owner_context, memory, access::read);
  remote_region region = pair.open(*owned);
  std::vector<std::byte> into(memory.size());
  // Nobody drives this reader: its answers fill the sockets and stop there.
  request read = region.start_read_at(0, into);
  std::this_thread::sleep_for(100ms);
  const clock::time_point begin = clock::now();
  owned->close();
  EXPECT_LT(clock::now() - begin, 20s) << "the heartbeat's time-out of 1 s bounds it";
  std::fill(memory.begin(), memory.end(), reused);
  memory.clear();
  memory.shrink_to_fit();
  std::error_code ec;
  read.wait(ec);
  EXPECT_TRUE(ec == errc::connection_reset || ec == errc::revoked) << ec;
  const auto wrong = std::find(into.begin(), into.end(), reused);
  EXPECT_TRUE(wrong == into.end() ||
              pattern_byte(static_cast<std::uint64_t>(wrong - into.begin()), 1) == reused)
      << "a byte from after the close has arrived";
}

TEST(RevocationInHandlers, IsImmediate) {
  connected_pair pair(
      {route::tcp_by_listener, progress_mode::sleeping_thread, progress_mode::caller, {}, {}});
  std::vector<std::byte> memory = pattern(16U << 20U, 1);
  std::optional<memory_region> owned(std::in_place, *pair.owner_context, memory, access::read);
  remote_region region = pair.open(*owned);
  std::vector<std::byte> into(memory.size());
  std::vector<request> reads;
  for (int i = 0; i < 8; ++i) reads.push_back(region.start_read_at(0, into));
  std::atomic<bool> closed{false};
  const clock::time_point begin = clock::now();
  pair.owner->post([&] {
    owned->close();
    std::fill(memory.begin(), memory.end(), reused);
    closed = true;
  });
  for (request& read : reads) {
    std::error_code ec;
    read.wait(ec);
    EXPECT_TRUE(!ec || ec == errc::revoked || ec == errc::connection_reset) << ec;
  }
  EXPECT_TRUE(pair.drive_until([&] { return closed.load(); }));

  EXPECT_LT(clock::now() - begin, 25s);
}

}  // namespace
}  // namespace ucx::test
