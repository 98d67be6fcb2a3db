#include "client/client_slot.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <system_error>
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
  const auto fail = [&](std::string& what, std::error_code& ec) -> std::shared_ptr<client_core> {
    ++attempts;
    // Until everybody waits for this.
    for (int i = 0; i < 20'000 && slot.asking() < several; ++i) std::this_thread::sleep_for(1ms);
    what = "nobody is there";
    ec = errc::timed_out;
    return nullptr;
  };
  std::atomic<std::size_t> told{0};
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < several; ++i) {
      threads.emplace_back([&] {
        std::string what;
        std::error_code ec;
        if (slot.get(fail, what, ec) == nullptr && ec == errc::timed_out &&
            what == "nobody is there") {
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
  const auto fail = [&](std::string&, std::error_code& ec) -> std::shared_ptr<client_core> {
    ++attempts;
    ec = errc::connection_refused;
    return nullptr;
  };
  for (int i = 1; i <= 3; ++i) {
    std::string what;
    std::error_code ec;
    EXPECT_EQ(slot.get(fail, what, ec), nullptr);
    EXPECT_EQ(ec, errc::connection_refused);
    EXPECT_EQ(attempts, i);
  }
  EXPECT_TRUE(slot.is_idle());
}

}  // namespace
}  // namespace ucx::detail
