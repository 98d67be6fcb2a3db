#include "connection/control_relay.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <future>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "connection/channel.hpp"
#include "connection/endpoint_core.hpp"
#include "support/basics/soon.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/client.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/many_files.hpp"
#include "ucx/publication.hpp"
#include "ucx/server.hpp"
#include "ucx/worker.hpp"
#include "wire/control_message.hpp"
#include "wire/frame.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::test {
namespace {

using namespace detail;

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
    connection->control().send(message);
    return true;
  }
  bool is_lost_before_long() const {
    return soon([this] { return static_cast<bool>(peer_.status()); });
  }
  /// Says hello, and returns when the server has heard it.
  void greet() {
    control_header asked;
    asked.type = control_type::hello;
    ASSERT_TRUE(say(encode_control(asked, hello_body{})));
    ASSERT_TRUE(soon([this] { return server_.statistics().clients == 2; }));
  }

  /// Counts what a server said that it is too busy for.
  struct refusals_of final : public channel_receiver {
    void received(std::span<const std::byte> message) override {
      const std::optional<control_header> said = decode_control(message);
      if (said && said->type == control_type::done && said->status == error_status(errc::busy)) {
        ++count;
      }
    }
    void ended(std::error_code) noexcept override {}
    std::atomic<int> count{0};
  };
  void hear(channel_receiver* by) {
    const std::lock_guard guard(core_access::core(driver_)->lock());
    core_access::core(peer_)->control().set_receiver(by);
  }

  ucx_server server_{two_workers()};
  client first_{server_.url()};  // of the first worker: the next is the second one's
  const context parent_{{.transports = {"tcp"}, .devices = {"lo"}, .share_memory = false}};
  const worker driver_{parent_, {.progress = progress_mode::sleeping_thread}};
  endpoint peer_{driver_, server_.address().socket};
};

// What one worker takes from the network, and another one answers, is held back by nothing else.
TEST_F(ControlRelay, TellsBusyToAPeerThatDoesNotWait) {
  refusals_of refusals;
  hear(&refusals);
  greet();
  control_header asked;
  asked.type = control_type::stat;
  const std::vector<std::byte> question = encode_control(asked, stat_body{"x"});
  {
    // Nobody answers meanwhile.
    const std::lock_guard busy(core_access::core(server_.worker(0))->lock());
    for (int i = 0; i < 6'000; ++i) ASSERT_TRUE(say(question)) << i;
    EXPECT_TRUE(soon([&] { return refusals.count > 0; }));
  }
  EXPECT_FALSE(peer_.status());
  hear(nullptr);
}

TEST_F(ControlRelay, BlamesAPeerThatIsToldThatItIsBusyAndGoesOn) {
  greet();
  control_header asked;
  asked.type = control_type::stat;
  const std::vector<std::byte> question = encode_control(asked, stat_body{"x"});
  {
    const std::lock_guard busy(core_access::core(server_.worker(0))->lock());
    for (int i = 0; i < 20'000 && say(question); ++i) {
    }
    EXPECT_TRUE(is_lost_before_long());
  }
  EXPECT_TRUE(first_.list().empty()) << "the others are served";
}

TEST_F(ControlRelay, BlamesAPeerThatSaysTooMuchThatHasNoAnswer) {
  greet();
  control_header said;
  said.type = control_type::release;
  const std::vector<std::byte> message = encode_control(said, release_body{1});
  {
    const std::lock_guard busy(core_access::core(server_.worker(0))->lock());
    for (int i = 0; i < 20'000 && say(message); ++i) {
    }
    EXPECT_TRUE(is_lost_before_long());
  }
  EXPECT_TRUE(first_.list().empty()) << "the others are served";
}

TEST_F(ControlRelay, KeepsLittleOfAPeerThatIsNotWelcomedYet) {
  control_header said;
  said.type = control_type::stat;
  const std::vector<std::byte> question = encode_control(said, stat_body{"x"});
  {
    const std::lock_guard busy(core_access::core(server_.worker(0))->lock());
    for (int i = 0; i < 100 && say(question); ++i) {
    }
    EXPECT_TRUE(is_lost_before_long());
  }
  EXPECT_TRUE(first_.list().empty()) << "the others are served";
}

// However many threads of a client send as much as they may, they are no reason to end it.
TEST_F(ControlRelay, LetsTheThreadsOfAClientStoreTogether) {
  const temporary_directory directory;
  const publication store = server_.publish_store(directory / "", {.writable = true});
  const client third(server_.url());
  client writer(server_.url());  // of the second worker
  const std::vector<std::byte> content(4'000);
  const auto store_many = [&](std::size_t by, std::chrono::seconds timeout) {
    std::vector<short_file> files;
    for (int i = 0; i < 500; ++i) {
      files.push_back({std::to_string(by) + '/' + std::to_string(i), content});
    }
    return write_many(writer, files, creation::replace, {.timeout = timeout});
  };
  {
    const std::lock_guard busy(core_access::core(server_.worker(0))->lock());
    std::vector<std::future<std::vector<std::error_code>>> all;
    for (std::size_t i = 0; i < 24; ++i)
      all.push_back(std::async(std::launch::async, store_many, i, std::chrono::seconds(1)));
    for (auto& each : all) {
      for (const std::error_code& outcome : each.get()) {
        EXPECT_TRUE(outcome == errc::timed_out || outcome == errc::busy) << outcome.message();
      }
    }
  }
  EXPECT_TRUE(soon([&] {
    const std::vector<std::error_code> outcomes = store_many(100, std::chrono::seconds(30));
    return std::none_of(outcomes.begin(), outcomes.end(), [](auto each) { return bool(each); });
  }));
}

}  // namespace
}  // namespace ucx::test
