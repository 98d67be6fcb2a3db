// Writers that die between writing and notifying: nobody hears of data that is not there.
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <sstream>
#include <string>
#include <thread>

#include "support/basics/soon.hpp"
#include "support/process/test_peer.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

constexpr int slot = 1 << 18;

struct count {
  int heard = 0;
  int wrong = 0;
};

count heard_by(test_peer& owner) {
  std::istringstream words(owner.ask("heard"));
  count read;
  words >> read.heard >> read.wrong;
  return read;
}

TEST(Notification, IsNeverHeardOfAWriterThatDiedBeforeIt) {
  test_peer owner("tcp");
  const socket_address where = owner.listen();
  const std::string descriptor =
      owner.ask("allocate " + std::to_string(16 * slot) + " read_write 1");
  owner.ask("listen_for " + std::to_string(slot));
  test_peer writer("tcp", "caller");
  writer.ask("connect " + to_string(where));
  writer.ask("open " + descriptor);
  // Of an owner that is stopped nothing is known to be in place, so that nothing is said of it.
  owner.process().stop();
  writer.say("tell " + std::to_string(slot) + " 1");
  std::this_thread::sleep_for(100ms);
  writer.process().kill();
  owner.process().resume();
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(heard_by(owner).heard, 0);
}

TEST(Notification, FindsItsDataWheneverItsWriterDies) {
  std::mt19937 random(3);
  test_peer owner("tcp");
  const socket_address where = owner.listen();
  const std::string descriptor =
      owner.ask("allocate " + std::to_string(16 * slot) + " read_write 1");
  owner.ask("listen_for " + std::to_string(slot));
  for (int i = 0; i < 15; ++i) {
    test_peer writer("tcp", "caller");
    writer.ask("connect " + to_string(where));
    writer.ask("open " + descriptor);
    writer.ask("tell " + std::to_string(slot) + " 0");
    std::this_thread::sleep_for(
        std::chrono::microseconds(std::uniform_int_distribution<int>(0, 20'000)(random)));
    writer.process().kill();
    ASSERT_TRUE(owner.process().running());
  }
  count last = heard_by(owner);
  EXPECT_TRUE(soon([&] {
    last = heard_by(owner);
    return last.heard >= 15;
  })) << last.heard;
  EXPECT_EQ(last.wrong, 0);
}

}  // namespace
}  // namespace ucx::test
