#include "client/client_slot.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "client/client_core.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

using namespace std::chrono_literals;

TEST(ClientSlot, SharesTheFailureOfOneAttempt) {
  constexpr std::size_t several = 6;
  client_slot slot;
  std::atomic<int> attempts{0};
  const auto fail = [&]() -> result<std::shared_ptr<client_core>> {
    ++attempts;
    // Until everybody waits for this.
    for (int i = 0; i < 20'000 && slot.asking() < several; ++i) std::this_thread::sleep_for(1ms);
    return failure{errc::timed_out, "nobody is there"};
  };
  std::atomic<std::size_t> told{0};
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < several; ++i) {
      threads.emplace_back([&] {
        const auto got = slot.get(fail);
        if (!got && got.why().code == errc::timed_out && got.why().text == "nobody is there") {
          ++told;
        }
      });
    }
  }
  EXPECT_EQ(told, several);
  EXPECT_EQ(attempts, 1);
  EXPECT_EQ(slot.asking(), 0U);
}

TEST(ClientSlot, TriesAgainForWhoComesLater) {
  client_slot slot;
  int attempts = 0;
  const auto fail = [&]() -> result<std::shared_ptr<client_core>> {
    ++attempts;
    return failure{errc::connection_refused};
  };
  for (int i = 1; i <= 3; ++i) {
    const auto got = slot.get(fail);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.why().code, errc::connection_refused);
    EXPECT_EQ(attempts, i);
  }
  EXPECT_TRUE(slot.is_idle());
}

}  // namespace
}  // namespace ucx::detail
