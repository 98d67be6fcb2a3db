// Readers and writers that are killed in mid-transfer: their owner lives, and serves the next.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <thread>

#include "support/bytes/pattern.hpp"
#include "support/process/test_peer.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t region_size = std::uint64_t{32} << 20U;
constexpr int rounds = 100;

/// A peer that transfers without end when it is killed after `life`.
void kill_in_mid_transfer(test_peer& victim, test_peer& owner, const socket_address& where,
                          const std::string& descriptor, bool reads, bool owner_stopped,
                          std::chrono::microseconds life) {
  victim.ask("connect " + to_string(where));
  victim.ask("open " + descriptor);
  victim.say(std::string("churn ") + (reads ? "read" : "write") + " 1048576 4");
  ASSERT_TRUE(victim.process().read_line(30s));
  std::this_thread::sleep_for(life);
  if (owner_stopped) owner.process().stop();
  victim.process().kill();
  if (owner_stopped) owner.process().resume();
}

/// Kills `rounds` readers or writers; half of them while the owner is stopped.
void kill_many(bool reads, const std::string& plane = "tcp") {
  std::mt19937 random(reads ? 1 : 2);
  test_peer owner(plane);
  const socket_address where = owner.listen();
  const std::string churned =
      owner.ask("allocate " + std::to_string(region_size) + " read_write 7");
  const std::string kept = owner.ask("allocate 65536 read 9");
  // What the first peers leave behind for good is not counted.
  std::deque<test_peer> victims;
  const auto next_victim = [&]() -> test_peer& {
    if (!victims.empty()) victims.pop_front();
    while (victims.size() < 8) victims.emplace_back(plane, "caller");
    return victims.front();
  };
  for (int i = 0; i < 3; ++i) {
    kill_in_mid_transfer(next_victim(), owner, where, churned, reads, false, 1ms);
  }
  const int files_before = std::stoi(owner.ask("files"));
  const auto memory_before = std::stoull(owner.ask("resident"));
  for (int i = 0; i < rounds; ++i) {
    SCOPED_TRACE(i);
    const std::chrono::microseconds life(std::uniform_int_distribution<int>(0, 4000)(random));
    kill_in_mid_transfer(next_victim(), owner, where, churned, reads, i % 2 == 1, life);
    ASSERT_TRUE(owner.process().running()) << "the owner died of its peer's death";
    if (i % 10 != 9) continue;
    test_peer& healthy = next_victim();
    healthy.ask("connect " + to_string(where));
    healthy.ask("open " + kept);
    ASSERT_EQ(healthy.ask("read 0 65536 9"), "yes");
  }
  victims.clear();
  // The last connections go when the owner has heard of it.
  int files = std::stoi(owner.ask("files"));
  const auto until = std::chrono::steady_clock::now() + 20s;
  while (files > files_before && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(20ms);
    files = std::stoi(owner.ask("files"));
  }
  EXPECT_LE(files, files_before);
  EXPECT_LT(std::stoull(owner.ask("resident")), memory_before + (std::uint64_t{64} << 20U));
}

TEST(KilledReaders, DoNotHarmTheirOwner) { kill_many(true); }

TEST(KilledReaders, OfMappedMemoryDoNotHarmTheirOwner) { kill_many(true, "mapped"); }

TEST(KilledWriters, DoNotHarmTheirOwner) { kill_many(false); }

TEST(KilledWriters, OfMappedMemoryDoNotHarmTheirOwner) { kill_many(false, "mapped"); }

}  // namespace
}  // namespace ucx::test
