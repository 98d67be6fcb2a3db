// Stores over TCP whose disk fails, and several whose disks hang.
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "store/store_core.hpp"
#include "support/bytes/bytes_of.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/replaced/failing_calls.hpp"
#include "support/replaced/short_memory.hpp"
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

class FailingDisk : public testing::Test {
 protected:
  static constexpr std::size_t quota = 1000;

  std::size_t unfinished() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(directory_ / ".ucxio-unfinished"), {}));
  }
  /// Writes half of the quota.
  remote_region written(const std::string& name) {
    remote_region file = client_.create(name);
    file.write_at(0, bytes_of(std::string(quota / 2, 'x')));
    return file;
  }

  /// Has the thread that writes do something, and waits until it has.
  void on_disk_thread(const std::function<void()>& what) {
    std::promise<void> done;
    {
      auto& core = static_cast<detail::store_core&>(*detail::core_access::core(store_));
      const std::lock_guard guard(detail::core_access::core(served_.worker())->lock());
      core.writing().write_later([&] {
        what();
        done.set_value();
        return detail::disk_queue::answer();
      });
    }
    done.get_future().wait();
  }

  const temporary_directory directory_;
  ucx_server served_;
  publication store_ = served_.publish_store(directory_ / "", {.writable = true, .quota = quota});
  client client_{served_.url()};
};

TEST_F(FailingDisk, GivesNoListThatLacksNames) {
  std::filesystem::create_directories(directory_ / "a");
  directory_.make("a/one", "1");
  directory_.make("two", "2");
  for (int spared = 0; spared < 12; ++spared) {
    const failing_calls failing(disk_call::readdir, EIO, spared);
    std::error_code ec;
    const std::vector<entry> all = client_.list({}, ec);
    EXPECT_TRUE(ec == errc::io_error || (!ec && all.size() == 2)) << spared << ec.message();
    EXPECT_TRUE(spared > 0 || ec == errc::io_error);
  }
  {
    const failing_calls failing(disk_call::readdir, EIO);
    std::error_code ec;
    client_.list_directory("", {}, ec);
    EXPECT_EQ(ec, errc::io_error);
    client_.list_directory("a", {}, ec);
    EXPECT_EQ(ec, errc::io_error);
  }
  EXPECT_EQ(client_.list().size(), 2U);
  EXPECT_EQ(client_.list_directory("a").entries.size(), 1U);
}

TEST_F(FailingDisk, IsNotPublishedWithAQuotaThatNobodyKnowsTheUseOf) {
  const failing_calls failing(disk_call::readdir, EIO, 1);
  std::error_code ec;
  const publication none =
      served_.publish_store(directory_ / "", {.prefix = "counted", .quota = 10}, ec);
  EXPECT_EQ(ec, errc::io_error);
  const publication other = served_.publish_store(directory_ / "", {.prefix = "not counted"}, ec);
  EXPECT_FALSE(ec);
}

TEST_F(FailingDisk, ThrowsAwayWhatItCanNotHaveForGood) {
  remote_region file = written("file");
  std::error_code ec;
  {
    const failing_calls failing(disk_call::fsync, EIO);
    client_.commit(file, {.durable = true}, {}, ec);
    EXPECT_EQ(ec, errc::io_error);
  }
  EXPECT_FALSE(std::filesystem::exists(directory_ / "file"));
  EXPECT_EQ(unfinished(), 0U);
  client_.commit(file, {.durable = true}, {}, ec);
  EXPECT_EQ(ec, errc::no_such_name);
  file.close();
  // Nothing is counted for it any more.
  remote_region one = written("one");
  remote_region two = written("two");
  client_.commit(one);
  client_.commit(two);
}

TEST_F(FailingDisk, SaysThatANameIsNotThereForGood) {
  remote_region file = written("a/file");
  std::error_code ec;
  {
    const failing_calls failing(disk_call::fsync, EIO, 1);  // the file, but not its directory
    client_.commit(file, {.durable = true, .close = true}, {}, ec);
    EXPECT_EQ(ec, errc::io_error);
  }
  EXPECT_FALSE(file.status()) << "it can be committed again";
  EXPECT_TRUE(std::filesystem::exists(directory_ / "a/file"));
  EXPECT_EQ(unfinished(), 0U);
  EXPECT_EQ(client_.commit(file, {.durable = true}).size, quota / 2);
  file.write_at(0, bytes_of("y"));
  file.flush();
  client_.commit(file, {.close = true});
  EXPECT_TRUE(content_of(directory_ / "a/file").starts_with("yx"));
  remote_region one = written("one");
  one.flush();
  remote_region two = written("two");
  two.flush({}, ec);
  EXPECT_EQ(ec, errc::no_space);
}

// What can not be thrown away for want of memory is swept by who publishes the directory next.
TEST_F(FailingDisk, HasNoMemoryToThrowSomethingAway) {
  auto& core = static_cast<detail::store_core&>(*detail::core_access::core(store_));
  auto& lock = detail::core_access::core(served_.worker())->lock();
  const std::string name = "a file with a name that is allocated";
  std::promise<std::shared_ptr<detail::store_region>> opened;
  {
    const std::lock_guard guard(lock);
    core.files().create(name, access::write, false,
                        [&](std::error_code, std::shared_ptr<detail::store_region> made,
                            const detail::file_facts&) { opened.set_value(std::move(made)); });
  }
  const std::shared_ptr<detail::store_region> region = opened.get_future().get();
  ASSERT_NE(region, nullptr);
  {
    const std::lock_guard guard(lock);
    allocations_until_failure = 0;
    core.files().let_go(*region);
    EXPECT_EQ(std::exchange(allocations_until_failure, -1), -1);
  }
  EXPECT_EQ(unfinished(), 1U);
  remote_region next = written(name);
  client_.commit(next, {.close = true});
  EXPECT_TRUE(std::filesystem::exists(directory_ / name));
  store_.close();
  store_ = served_.publish_store(directory_ / "", {.writable = true});
  EXPECT_EQ(unfinished(), 0U);
}

// Each allocation that a commit makes on the disk's thread fails in turn.
TEST_F(FailingDisk, SaysThatThereIsNoMemoryAndLosesNothing) {
  // Long enough to be allocated wherever it is copied.
  const std::string name = "a directory with a name/a file with a name";
  int failures = 0;
  bool durable = true;
  for (int spared = 0, rounds = 0; rounds < 2; ++spared) {
    ASSERT_LT(spared, 1000);
    remote_region file = written(name);
    file.flush();
    on_disk_thread([spared] { allocations_until_failure = spared; });
    std::error_code ec;
    client_.commit(file, {.durable = durable}, {}, ec);
    EXPECT_TRUE(!ec || ec == errc::no_memory) << spared << ' ' << ec.message();
    EXPECT_TRUE(durable || !ec == std::filesystem::exists(directory_ / name)) << spared;
    failures += ec ? 1 : 0;
    bool all_tried = false;
    on_disk_thread([&all_tried] { all_tried = std::exchange(allocations_until_failure, -1) >= 0; });
    EXPECT_EQ(unfinished(), 0U) << spared;
    EXPECT_TRUE(ec || std::filesystem::exists(directory_ / name)) << spared;
    client_.commit(file, {.close = true}, {}, ec);  // frees the name
    client_.remove(name, {}, ec);
    EXPECT_TRUE(!ec || ec == errc::no_such_name) << spared << ' ' << ec.message();
    if (!all_tried) continue;
    ++rounds;
    spared = -1;
    durable = false;
  }
  EXPECT_GT(failures, 0);
  // Nothing is counted for what is not there any more.
  remote_region one = written("one");
  remote_region two = written("two");
  client_.commit(one);
  client_.commit(two);
}

// Each of them by itself would be waited for two seconds.
TEST(HangingDisks, AreLeftBehindTogether) {
  constexpr int count = 5;
  const temporary_directory directory;
  std::promise<void> disk;
  const std::shared_future<void> answers = disk.get_future().share();
  ucx_server served;
  std::vector<publication> stores;
  for (int i = 0; i < count; ++i) {
    const std::string name = std::to_string(i);
    std::filesystem::create_directories(directory / name);
    stores.push_back(served.publish_store(directory / name, {.prefix = name, .writable = true}));
    auto& core = static_cast<detail::store_core&>(*detail::core_access::core(stores.back()));
    const std::lock_guard guard(detail::core_access::core(served.worker())->lock());
    core.writing().write_later([answers] {
      answers.wait();
      return detail::disk_queue::answer();
    });
  }
  const auto begin = std::chrono::steady_clock::now();
  served.close();
  EXPECT_LT(std::chrono::steady_clock::now() - begin,
            count * detail::disk_thread::longest_farewell);
  disk.set_value();
}

}  // namespace
}  // namespace ucx::test
