// Which failures of ports a program is told, and when.
#include "server/port_failures.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <stdexcept>
#include <string>
#include <vector>

#include "ucx/error.hpp"

namespace ucx::test {
namespace {

using detail::port_failures;

listener_failure failure_at(const std::string& address) {
  return {socket_address(address), errc::too_many_files, "lost " + address};
}

TEST(PortFailures, AreToldOnceForEachPort) {
  std::vector<std::string> told;
  const auto tell = port_failures::in_order(
      [&](const listener_failure& lost) { told.push_back(to_string(lost.port)); });
  for (const char* const each :
       {"127.0.0.1:1", "[::1]:1", "127.0.0.1:1", "127.0.0.1:2", "[::1]:1"}) {
    tell(failure_at(each));
  }
  EXPECT_EQ(told, (std::vector<std::string>{"127.0.0.1:1", "[::1]:1", "127.0.0.1:2"}));
}

TEST(PortFailures, AreNotToldWhereThereIsNoHandler) { EXPECT_FALSE(port_failures::in_order({})); }

// The handler may wait for the thread that brings the second one.
TEST(PortFailures, AreToldOneAtATimeByTheFirstThread) {
  std::vector<std::string> told;
  bool inside = false;
  std::function<void(const listener_failure&)> tell;
  tell = port_failures::in_order([&](const listener_failure& lost) {
    EXPECT_FALSE(inside);
    inside = true;
    if (told.empty()) {
      std::async(std::launch::async, [&] { tell(failure_at("[::1]:1")); }).get();
    }
    told.push_back(lost.error_message);
    inside = false;
  });
  tell(failure_at("127.0.0.1:1"));
  EXPECT_EQ(told, (std::vector<std::string>{"lost 127.0.0.1:1", "lost [::1]:1"}));
}

TEST(PortFailures, GoOnBehindAHandlerThatThrows) {
  int calls = 0;
  const auto tell = port_failures::in_order([&](const listener_failure&) {
    if (++calls == 1) throw std::runtime_error("the program's");
  });
  EXPECT_THROW(tell(failure_at("127.0.0.1:1")), std::runtime_error);
  tell(failure_at("127.0.0.1:2"));
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace ucx::test
