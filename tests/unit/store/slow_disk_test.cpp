// Stores over TCP whose disk keeps everybody waiting.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <future>
#include <iterator>
#include <memory>
#include <string>
#include <system_error>
#include <thread>

#include "store/store_core.hpp"
#include "support/bytes/bytes_of.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/publication.hpp"
#include "ucx/server.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

class SlowDisk : public testing::Test {
 protected:
  ~SlowDisk() override { go_on(); }

  detail::store_core& core() {
    return static_cast<detail::store_core&>(*detail::core_access::core(store_));
  }
  /// Has the thread that writes wait for `go_on()`, and behind that do `more` things.
  void hang(std::size_t more = 0) {
    const std::lock_guard guard(detail::core_access::core(served_.worker())->lock());
    core().writing().write_later([answers = answers_] {
      answers.wait();
      return detail::disk_queue::answer();
    });
    for (std::size_t i = 0; i < more; ++i) {
      core().writing().write_later([] { return detail::disk_queue::answer(); });
    }
  }
  void go_on() {
    if (!std::exchange(goes_on_, true)) disk_.set_value();
  }
  template <class Condition>
  static bool eventually(Condition condition) {
    for (int i = 0; i < 3000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(10ms);
    }
    return false;
  }

  const temporary_directory directory_;
  std::promise<void> disk_;
  std::shared_future<void> answers_ = disk_.get_future().share();
  bool goes_on_ = false;
  ucx_server served_;
  publication store_ = served_.publish_store(directory_ / "", {.writable = true});
  client writer_{served_.url()};
};

TEST_F(SlowDisk, CommitsHoweverMuchWaits) {
  remote_region file = writer_.create("new");
  file.write_at(0, bytes_of("text"));
  file.flush();
  hang(5000);
  std::thread later([this] {
    std::this_thread::sleep_for(50ms);
    go_on();
  });
  std::error_code ec;
  writer_.commit(file, {}, {}, ec);
  later.join();
  EXPECT_FALSE(ec) << ec.message();
  EXPECT_EQ(content_of(directory_ / "new"), "text");
}

TEST_F(SlowDisk, CommitsOnceAtATimeAndKeepsTheFileMeanwhile) {
  remote_region file = writer_.create("new");
  file.write_at(0, bytes_of("text"));
  file.flush();
  hang();
  std::error_code ec;
  writer_.commit(file, {}, {.timeout = 100ms}, ec);
  EXPECT_EQ(ec, errc::timed_out);
  writer_.commit(file, {}, {}, ec);
  EXPECT_EQ(ec, errc::busy);
  go_on();
  EXPECT_TRUE(eventually([&] {
    writer_.commit(file, {}, {}, ec);
    return !ec;
  }));
  EXPECT_EQ(content_of(directory_ / "new"), "text");
}

TEST_F(SlowDisk, NamesAFileWhoseWriterDiedBehindItsCommit) {
  client second(served_.url());
  {
    client dying(served_.url());
    remote_region file = dying.create("new");
    file.write_at(0, bytes_of("text"));
    file.flush();
    hang();
    std::error_code ec;
    dying.commit(file, {}, {.timeout = 100ms}, ec);
    EXPECT_EQ(ec, errc::timed_out);
    file = second.create("other");
    dying.close();
  }
  std::this_thread::sleep_for(50ms);
  std::error_code ec;
  second.create("new", {}, {}, ec);
  EXPECT_EQ(ec, errc::busy);  // it is not free as long as it may still be given
  go_on();
  EXPECT_TRUE(eventually([&] {
    second.create("new", {}, {}, ec);
    return !ec;
  }));
  EXPECT_EQ(content_of(directory_ / "new"), "text");
}

TEST_F(SlowDisk, IsAnsweredForWhereTheStoreIsClosed) {
  remote_region file = writer_.create("new");
  file.write_at(0, bytes_of("text"));
  file.flush();
  hang();
  std::error_code ec;
  const std::uint64_t before = writer_.statistics().requests;
  std::thread asking([&] { writer_.commit(file, {}, {.timeout = 60s}, ec); });
  for (int i = 0; i < 30'000 && writer_.statistics().requests == before; ++i) {
    std::this_thread::sleep_for(1ms);
  }
  std::this_thread::sleep_for(100ms);
  const auto begin = std::chrono::steady_clock::now();
  store_.close();
  asking.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
  EXPECT_EQ(ec, errc::revoked);
}

}  // namespace
}  // namespace ucx::test
