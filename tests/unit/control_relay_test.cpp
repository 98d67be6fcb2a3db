#include "detail/control_relay.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "detail/control_message.hpp"
#include "detail/core_access.hpp"
#include "detail/endpoint_core.hpp"
#include "detail/worker_core.hpp"
#include "ucx/client.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/server.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using namespace detail;
using namespace std::chrono_literals;

/// A server of two workers, and a peer of the second one, whose session lives on the first.
class ControlRelay : public testing::Test {
 protected:
  static server_options two_workers() {
    server_options chosen;
    chosen.workers = 2;
    return chosen;
  }
  /// Returns whether it could be said: the connection lives.
  bool say(const std::vector<std::byte>& message) {
    const std::lock_guard guard(core_access::core(driver_)->lock());
    const auto& connection = core_access::core(peer_);
    if (connection->status()) return false;
    connection->send_control(message);
    return true;
  }
  bool is_lost_before_long() const {
    for (const auto end = std::chrono::steady_clock::now() + 10s;
         std::chrono::steady_clock::now() < end; std::this_thread::sleep_for(5ms)) {
      if (peer_.status()) return true;
    }
    return false;
  }

  server server_{two_workers()};
  client first_{server_.url()};  // of the first worker: the next is the second one's
  const context parent_{{.transports = {"tcp"}, .devices = {"lo"}, .share_memory = false}};
  const worker driver_{parent_, {.progress = progress_mode::sleeping_thread}};
  endpoint peer_{driver_, server_.address().socket};
};

// What one worker takes from the network, and another one answers, is held back by nothing else.
TEST_F(ControlRelay, BlamesAPeerThatDoesNotWaitForItsAnswers) {
  control_header asked;
  asked.type = control_type::hello;
  ASSERT_TRUE(say(encode_control(asked, hello_body{})));
  asked.type = control_type::stat;
  const std::vector<std::byte> question = encode_control(asked, stat_body{"x"});
  {
    // Nobody answers meanwhile.
    const std::lock_guard busy(core_access::core(server_.worker(0))->lock());
    for (int i = 0; i < 20'000 && say(question); ++i) {
    }
    EXPECT_TRUE(is_lost_before_long());
  }
  EXPECT_TRUE(first_.list().empty()) << "the others are served";
}

}  // namespace
}  // namespace ucx::test
