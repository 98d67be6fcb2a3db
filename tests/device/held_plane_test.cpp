// Planes whose thread is in UCX or in the driver: what waits for it, and what does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "device/plane_hosts.hpp"
#include "support/basics/soon.hpp"
#include "support/bytes/pattern.hpp"
#include "ucx/error.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"
#include "worker/context_core.hpp"
#include "worker/core_access.hpp"
#include "worker/device_plane.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

std::error_code outcome_of(request& ended) {
  std::error_code ec;
  ended.wait(ec);
  return ec;
}

bool is_said_of_rma(const remote_region& region, const char* what) {
  return soon([&] { return region.why_not(transfer_method::rma).find(what) != std::string::npos; });
}

TEST(HeldPlane, HasTheMemoryOfAccessesThatAreGivenUp) {
  two_hosts hosts;
  remote_region region = hosts.opened();
  remote_region other = hosts.open({.transfer_method = transfer_method::message});
  held_plane held(hosts.pair.reader_context);
  std::vector<std::byte> into(plane_size);
  const std::vector<std::byte> from = pattern(plane_size, 2);
  request reading = region.start_read_at(0, into);
  request writing = region.start_write_at(0, from);
  region.close();  // which gives them up
  std::vector<std::byte> copy(plane_size);
  EXPECT_FALSE(read_plane(other, copy));
  EXPECT_TRUE(holds_pattern(copy, 1));
  EXPECT_FALSE(reading.done());
  EXPECT_FALSE(writing.done());
  held.go_on();
  EXPECT_EQ(outcome_of(reading), errc::canceled);
  EXPECT_EQ(outcome_of(writing), errc::canceled);
  EXPECT_TRUE(hosts.holds(1));
}

TEST(HeldPlane, IsWaitedForBehindADeadline) {
  simulated_pair_options options = by_adapters();
  options.reader_worker.heartbeat_timeout = 2s;
  two_hosts hosts(options);
  remote_region region = hosts.opened();
  held_plane held(hosts.pair.reader_context);
  std::vector<std::byte> into(plane_size);
  request reading = region.start_read_at(0, into, {.timeout = 1ms});
  EXPECT_TRUE(soon([&] {
    return hosts.readers_lines.all().find("given up is in use still") != std::string::npos;
  }));
  EXPECT_FALSE(reading.done());
  held.go_on();
  EXPECT_EQ(outcome_of(reading), errc::timed_out);
  EXPECT_FALSE(read_plane(region, into));
  EXPECT_TRUE(holds_pattern(into, 1));
}

TEST(HeldPlane, IsLeftByAHandlerThatDropsARequest) {
  simulated_pair_options options = by_adapters();
  options.reader_worker.heartbeat_timeout = 500ms;
  std::vector<std::byte> into(plane_size);
  two_hosts hosts(options);
  remote_region region = hosts.opened();
  held_plane held(hosts.pair.reader_context);
  std::optional<request> reading(region.start_read_at(0, into));
  std::promise<void> dropped;
  hosts.pair.reader.post([&] {
    reading.reset();
    dropped.set_value();
  });
  EXPECT_EQ(dropped.get_future().wait_for(30s), std::future_status::ready);
  const std::shared_ptr<detail::endpoint_core> kept = detail::core_access::core(*hosts.connection);
  const long shares = kept.use_count();
  held.go_on();
  EXPECT_TRUE(soon([&] { return kept.use_count() < shares; }));
}

TEST(HeldPlane, DoesNotHoldTheWorkerThatOpensByName) {
  two_hosts hosts;
  const remote_region other = hosts.open({.transfer_method = transfer_method::message});
  held_plane held(hosts.pair.reader_context);
  const remote_descriptor told = hosts.exposed->descriptor();
  const auto plane = *detail::core_access::core(hosts.pair.reader_context)->plane();
  const auto peer = plane->peer(told.device_rma.worker);
  const long unused = peer.use_count();
  auto opening = std::async(std::launch::async, [&] {
    std::error_code ec;
    const remote_region made(*hosts.connection, told, {.transfer_method = transfer_method::rma},
                             ec);
    return ec;
  });
  EXPECT_TRUE(soon([&] { return peer.use_count() > unused; }));
  std::vector<std::byte> into(plane_size);
  remote_region more = hosts.open({.transfer_method = transfer_method::message});
  EXPECT_FALSE(read_plane(more, into));
  held.go_on();
  EXPECT_FALSE(opening.get());
}

TEST(HeldPlane, ThatOpensByNameLosesItsConnection) {
  two_hosts hosts;
  held_plane held(hosts.pair.reader_context);
  const remote_descriptor told = hosts.exposed->descriptor();
  const auto plane = *detail::core_access::core(hosts.pair.reader_context)->plane();
  const auto peer = plane->peer(told.device_rma.worker);
  const long unused = peer.use_count();
  auto opening = std::async(std::launch::async, [&] {
    std::error_code ec;
    const remote_region made(*hosts.connection, told, {.transfer_method = transfer_method::rma},
                             ec);
    return ec;
  });
  EXPECT_TRUE(soon([&] { return peer.use_count() > unused; }));
  hosts.connection->close(close_mode::abort);
  held.go_on();
  EXPECT_EQ(opening.get(), errc::closed);
}

TEST(PlaneInTheMaking, HoldsNobody) {
  std::promise<void> released;
  const std::shared_future<void> goes_on = released.get_future().share();
  simulated_pair_options options = by_adapters();
  two_hosts hosts(options, access::read_write, [goes_on](std::string_view line) {
    if (line.find("by a second context") != line.npos) goes_on.wait_for(60s);
  });
  remote_region region = hosts.open();
  std::vector<std::byte> into(plane_size);
  EXPECT_FALSE(read_plane(region, into));
  EXPECT_TRUE(holds_pattern(into, 1));
  EXPECT_THAT(region.why_not(transfer_method::rma), HasSubstr("has not come yet"));
  released.set_value();
  EXPECT_TRUE(soon([&] { return region.transfer_method() == transfer_method::rma; }));
}

TEST(PlaneInTheMaking, IsMadeAgainWhereMemoryWasShort) {
  two_hosts hosts;
  hosts.pair.reader_process.faults().fail(call::init, UCS_ERR_NO_MEMORY);
  const remote_region first = hosts.open();
  EXPECT_TRUE(is_said_of_rma(first, "second context"));
  const remote_region second = hosts.opened();
  EXPECT_EQ(first.transfer_method(), transfer_method::message);
}

TEST(PlaneInTheMaking, IsNotThereForWritesEither) {
  two_hosts hosts(by_adapters(), access::write);
  hosts.pair.reader_process.faults().fail(call::init, UCS_ERR_UNSUPPORTED);
  remote_region region = hosts.open();
  region.write_at(0, pattern(plane_size, 2));
  region.flush();
  EXPECT_TRUE(hosts.holds(2));
  EXPECT_EQ(hosts.puts(), 0U);
  EXPECT_THAT(region.why_not(transfer_method::rma), HasSubstr("second context"));
}

TEST(PlaneInTheMaking, GoesOnBehindAFirstByteThatFailedAlone) {
  two_hosts hosts;
  hosts.pair.reader_process.faults().fail(call::get, UCS_ERR_NO_MEMORY);
  remote_region region = hosts.open();
  EXPECT_TRUE(is_said_of_rma(region, "first byte by RMA could not be read"));
  std::vector<std::byte> into(plane_size);
  EXPECT_FALSE(read_plane(region, into));
  EXPECT_TRUE(holds_pattern(into, 1));
  EXPECT_EQ(hosts.gets(), 2U);
  EXPECT_EQ(region.transfer_method(), transfer_method::rma);
}

}  // namespace
}  // namespace ucx::test
