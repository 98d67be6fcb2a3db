// Stores over the simulated network: peers that do not keep to what they are told.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <future>
#include <mutex>
#include <string>
#include <vector>

#include "region/remote/remote_region_core.hpp"
#include "store/store_core.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/simulated/simulated_server.hpp"
#include "ucx/error.hpp"
#include "ucx/publication.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::test {
namespace {

TEST(StoreOverTheSeam, KeepsNothingOfAPeerBeyondItsWindow) {
  const temporary_directory directory;
  // Long enough in real time for the disk, before a deadline of simulated time passes.
  simulated_server served{{.pause = std::chrono::milliseconds(1)}};
  publication store = served.server().publish_store(
      directory / "", {.writable = true, .write_window = std::size_t{1} << 20U});
  client hostile = served.connect();
  remote_region file = hostile.create("new");
  // It writes as if it had been told of another window.
  detail::core_access::core(file)->window().resize(std::uint64_t{1} << 40U);
  // And the disk takes nothing meanwhile, so that everything that is kept is kept in memory.
  std::promise<void> disk;
  {
    auto& core = static_cast<detail::store_core&>(*detail::core_access::core(store));
    const std::lock_guard guard(detail::core_access::core(served.server().worker())->lock());
    core.writing().write_later([answers = disk.get_future().share()] {
      answers.wait();
      return detail::disk_queue::answer();
    });
  }
  const std::vector<std::byte> bytes = pattern(20'000'000);
  std::error_code ec;
  file.write_at(0, bytes, {}, ec);
  if (!ec) file.flush({}, ec);
  disk.set_value();
  EXPECT_EQ(ec, errc::busy);
}

}  // namespace
}  // namespace ucx::test
