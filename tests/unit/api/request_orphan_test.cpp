// request::orphan: what is dropped without waiting, and when its memory is let go of.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/bytes/untouched.hpp"
#include "support/simulated/served_region.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/request.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

using memory = std::shared_ptr<std::vector<std::byte>>;

memory make_memory(std::size_t size) {
  return std::make_shared<std::vector<std::byte>>(size, untouched);
}

/// A connected writer whose owner takes nothing until it is resumed.
struct stuck_region : served_region {
  static constexpr std::size_t size = std::size_t{16} << 20U;  // more than sockets hold
  static constexpr std::chrono::milliseconds heartbeat{700};

  static simulated_pair_options options() {
    simulated_pair_options made;
    made.reader_worker.heartbeat_timeout = heartbeat;
    return made;
  }
  stuck_region() : served_region(size, options()) {
    connection.wait_connected();
    pair.owner_process.stop();
  }
  ~stuck_region() { pair.owner_process.resume(); }
};

TEST(OrphanedRequest, OfAReadLetsGoAtOnce) {
  stuck_region served;
  memory into = make_memory(100);
  const std::weak_ptr kept = into;
  request read = served.region.start_read_at(0, *into);
  read.orphan(std::move(into));
  EXPECT_TRUE(read.done());
  served.pair.reader.progress();
  EXPECT_TRUE(kept.expired());
}

TEST(OrphanedRequest, ThatIsDoneOrEmptyKeepsNothing) {
  served_region served(100);
  memory into = make_memory(100);
  const std::weak_ptr kept = into;
  request read = served.region.start_read_at(0, *into);
  read.wait();
  read.orphan(std::move(into));
  EXPECT_TRUE(kept.expired());
  request().orphan(1);
}

TEST(OrphanedRequest, OfAStuckWriteKeepsItsMemoryUntilUcxHasLetGo) {
  stuck_region served;
  memory from = make_memory(stuck_region::size);
  const std::weak_ptr kept = from;
  request write = served.region.start_write_at(0, *from);
  served.pair.reader.progress();
  const auto begin = served.network().now();
  write.orphan(std::move(from));
  EXPECT_EQ(served.network().now(), begin) << "it waits for nobody";
  EXPECT_FALSE(kept.expired());
  served.network().run_until([&] { return kept.expired(); }, 20s);
  EXPECT_TRUE(kept.expired());
  EXPECT_LT(served.network().now() - begin, stuck_region::heartbeat + 150ms);
}

TEST(OrphanedRequest, InAHandlerLeavesTheConnectionAlone) {
  stuck_region served;
  memory from = make_memory(stuck_region::size);
  const std::weak_ptr kept = from;
  std::optional<request> write = served.region.start_write_at(0, *from);
  bool orphaned = false;
  served.pair.reader.post([&] {
    write->orphan(std::move(from));
    orphaned = true;
  });
  served.pair.reader.progress();
  EXPECT_TRUE(orphaned);
  EXPECT_FALSE(served.region.status());
  served.pair.owner_process.resume();
  EXPECT_TRUE(served.network().run_until([&] { return kept.expired(); }));
  EXPECT_FALSE(served.region.status());
}

TEST(OrphanedRequest, CallsItsHandlerBeforeItLetsGo) {
  stuck_region served;
  memory from = make_memory(stuck_region::size);
  const std::weak_ptr kept = from;
  request write = served.region.start_write_at(0, *from);
  std::optional<std::error_code> outcome;
  write.then([&](std::error_code ec) {
    outcome = ec;
    EXPECT_FALSE(kept.expired());
  });
  write.orphan(std::move(from));
  EXPECT_FALSE(outcome);
  served.pair.owner_process.resume();
  EXPECT_TRUE(served.network().run_until([&] { return kept.expired(); }));
  ASSERT_TRUE(outcome);
}

TEST(OrphanedRequest, GoesWithItsWorker) {
  std::weak_ptr<std::vector<std::byte>> kept;
  {
    stuck_region served;
    memory from = make_memory(stuck_region::size);
    kept = from;
    request write = served.region.start_write_at(0, *from);
    write.orphan(std::move(from));
  }
  EXPECT_TRUE(kept.expired());
}

}  // namespace
}  // namespace ucx::test
