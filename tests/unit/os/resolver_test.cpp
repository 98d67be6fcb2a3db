#include "os/resolver.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "support/replaced/shortage.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

std::atomic<bool> answers{false};

/// A resolver whose servers are away for as long as the test wants.
resolution slow(const std::string&, std::uint16_t port) {
  while (!answers) std::this_thread::sleep_for(1ms);
  return {{socket_address("127.0.0.1", port)}, {}, {}};
}

resolution refuse(const std::string&, std::uint16_t) {
  return {{}, make_error_code(errc::host_not_found), "no such name"};
}

TEST(Lookup, OfANumberAsksNobody) {
  bool told = false;
  lookup numeric(
      "::1", 7, [&] { told = true; }, &refuse);
  EXPECT_TRUE(told);
  EXPECT_TRUE(numeric.done());
  EXPECT_EQ(numeric.take().addresses, std::vector{socket_address("[::1]:7")});
}

TEST(Lookup, TellsWhatTheResolverSays) {
  lookup asked("nobody", 7, {}, &refuse);
  ASSERT_TRUE(asked.wait_until(clock::now() + 10s));
  const resolution found = asked.take();
  EXPECT_EQ(found.failure, errc::host_not_found);
  EXPECT_EQ(found.words, "no such name");
}

TEST(Lookup, OfWhatIsNoNameFails) {
  for (const std::string& name : {std::string(), std::string("a\0b", 3)}) {
    lookup asked(name, 7, {}, &slow);
    ASSERT_TRUE(asked.done());
    EXPECT_EQ(asked.take().failure, errc::host_not_found);
  }
}

TEST(Lookup, IsWaitedForNoLongerThanWanted) {
  answers = false;
  std::atomic<int> told{0};
  {
    lookup asked(
        "away", 7, [&] { ++told; }, &slow);
    EXPECT_FALSE(asked.wait_until(clock::now() + 5ms));
    EXPECT_FALSE(asked.done());
  }
  answers = true;  // nobody listens any more
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(told, 0);
}

TEST(Lookup, ThreadsThatWaitForTheResolverAreFew) {
  answers = false;
  int refused = 0;
  for (int i = 0; i < 80; ++i) {
    lookup asked("away", 7, {}, &slow);
    if (asked.done() && asked.take().failure == errc::busy) ++refused;
  }
  EXPECT_GE(refused, 16);
  answers = true;
  std::optional<resolution> found;  // `busy` until one of those threads has ended
  const auto limit = clock::now() + 20s;
  do {
    lookup asked("here again", 7, {}, &slow);
    ASSERT_TRUE(asked.wait_until(limit));
    found = asked.take();
  } while (found->failure == errc::busy && clock::now() < limit);
  EXPECT_FALSE(found->failure);
}

/// Who can not be asked for want of memory is not counted among those who are asked.
TEST(Lookup, ThatThereIsNoMemoryForTakesNoneOfTheThreads) {
  const std::string name = "a name that is longer than what a string has room for by itself";
  int thrown = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    try {
      const test::lasting_shortage begun(i % 4);
      const lookup asked(name, 7, {}, &refuse);
    } catch (const std::bad_alloc&) {
      ++thrown;
    }
  }
  EXPECT_GT(thrown, 100);
  lookup asked(name, 7, {}, &refuse);
  ASSERT_TRUE(asked.wait_until(clock::now() + 10s));
  EXPECT_EQ(asked.take().failure, errc::host_not_found);
}

}  // namespace
}  // namespace ucx::detail
