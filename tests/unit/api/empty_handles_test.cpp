// What a failed constructor leaves: an object that can be destroyed and assigned to.
#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "support/simulated/served_region.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_region.hpp"
#include "worker/core_access.hpp"

namespace ucx::test {
namespace {

TEST(EmptyHandle, OfAContextIsReplacedByAGoodOne) {
  simulated_pair pair;
  pair.network.faults().fail(call::init, UCS_ERR_NO_MEMORY);
  std::error_code ec;
  context made = detail::core_access::make_context(pair.reader_process.api(), {}, ec);
  EXPECT_EQ(ec, errc::no_memory);
  made = detail::core_access::make_context(pair.reader_process.api(), {}, ec);
  EXPECT_FALSE(ec);
  EXPECT_FALSE(made.transports().empty());
}

TEST(EmptyHandle, OfAWorkerIsReplacedByAGoodOne) {
  simulated_pair pair;
  pair.network.faults().fail(call::worker_create, UCS_ERR_NO_MEMORY);
  std::error_code ec;
  worker made(pair.reader_context, {}, ec);
  EXPECT_EQ(ec, errc::no_memory);
  // Whatever is made from it fails, and is empty too.
  endpoint connection(made, pair.owner.address(), {}, ec);
  EXPECT_EQ(ec, errc::closed);
  listener listening(made, socket_address("127.0.0.1:0"), {}, ec);
  EXPECT_EQ(ec, errc::closed);
  made = worker(pair.reader_context);
  connection = endpoint(made, pair.owner.address());
  connection.wait_connected();
  listening = listener(made, socket_address("127.0.0.1:0"));
  EXPECT_NE(listening.address().port(), 0);
}

TEST(EmptyHandle, OfAWorkerThatWasMovedFromTellsNothing) {
  simulated_pair pair;
  worker moved(pair.reader_context);
  const worker taken = std::move(moved);
  std::error_code ec;
  EXPECT_EQ(moved.attributes(ec).address_size, 0U);
  EXPECT_EQ(ec, errc::closed);
  EXPECT_TRUE(moved.address(ec).empty());
  EXPECT_EQ(ec, errc::closed);
  EXPECT_THROW(moved.attributes(), error);
  EXPECT_GT(taken.attributes().address_size, 0U);
}

TEST(EmptyHandle, OfAnEndpointIsClosed) {
  simulated_pair pair;
  pair.network.faults().fail(call::ep_create, UCS_ERR_UNREACHABLE);
  std::error_code ec;
  endpoint connection(pair.reader, pair.owner.address(), {}, ec);
  EXPECT_EQ(ec, errc::unreachable);
  EXPECT_EQ(connection.status(), errc::closed);
  remote_region region(connection, remote_descriptor(), {}, ec);
  EXPECT_EQ(ec, errc::closed);
  EXPECT_EQ(region.status(), errc::closed);
  connection = pair.connect();
  connection.wait_connected();
  EXPECT_FALSE(connection.status());
}

TEST(EmptyHandle, OfAListenerIsReplacedByAGoodOne) {
  simulated_pair pair;
  pair.network.faults().fail(call::listener_create, UCS_ERR_NO_MEMORY);
  std::error_code ec;
  listener listening(pair.owner, socket_address("127.0.0.1:0"), {}, ec);
  EXPECT_EQ(ec, errc::no_memory);
  listening = listener(pair.owner, socket_address("127.0.0.1:0"));
  EXPECT_NE(listening.address().port(), 0);
}

TEST(EmptyHandle, OfMemoryExposesNothing) {
  simulated_pair pair;
  std::vector<std::byte> bytes(100);
  pair.network.faults().fail(call::mem_map, UCS_ERR_INVALID_PARAM);
  std::error_code ec;
  memory_region exposed(pair.owner_context, std::span<std::byte>(bytes), access::read, {}, ec);
  EXPECT_TRUE(ec);
  EXPECT_TRUE(exposed.bytes().empty());
  exposed = memory_region(pair.owner_context, std::span<std::byte>(bytes), access::read);
  EXPECT_EQ(exposed.size(), 100U);
}

TEST(EmptyHandle, OfARegionThatWasMovedFromFailsItsOperations) {
  served_region served(100);
  remote_region taken = std::move(served.region);
  std::vector<std::byte> into(10);
  EXPECT_EQ(served.region.start_read_at(0, into).error(), errc::closed);
  EXPECT_EQ(served.region.start_write_at(0, into).error(), errc::closed);
  served.region = std::move(taken);
  served.region.read_at(0, into);
}

TEST(EmptyHandle, OfMemoryWithoutKnownAddressIsNotMade) {
  simulated_pair pair;
  pair.network.faults().fail(call::mem_query, UCS_ERR_IO_ERROR);
  std::error_code ec;
  const memory_region none =
      memory_region::allocate(pair.owner_context, 1000, access::read_write, {}, ec);
  EXPECT_EQ(ec, errc::io_error);
  EXPECT_TRUE(none.bytes().empty());
}

}  // namespace
}  // namespace ucx::test
