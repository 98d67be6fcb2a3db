// UCX's own status behind an error: of calls, of requests and of connections.
#include <gtest/gtest.h>
#include <ucs/type/status.h>

#include <chrono>
#include <cstddef>
#include <future>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "support/simulated/remote_memory.hpp"
#include "support/simulated/served_region.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_region.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

/// Returns the status of what `call` throws.
template <class Call>
std::optional<int> thrown_status(Call call) {
  try {
    call();
  } catch (const error& failed) {
    return failed.ucx_status();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(UcxStatus, HasTheNameThatUcxGivesIt) {
  EXPECT_EQ(ucx_status_name(-25), "UCS_ERR_CONNECTION_RESET");
  EXPECT_EQ(ucx_status_name(UCS_ERR_NO_MESSAGE), "UCS_ERR_NO_MESSAGE");
  EXPECT_EQ(ucx_status_name(UCS_ERR_ENDPOINT_TIMEOUT), "UCS_ERR_ENDPOINT_TIMEOUT");
  EXPECT_EQ(ucx_status_name(UCS_OK), "UCS_OK");
  EXPECT_EQ(ucx_status_name(UCS_ERR_FIRST_LINK_FAILURE - 3), "UCS_ERR_LINK_FAILURE");
  EXPECT_EQ(ucx_status_name(UCS_ERR_FIRST_ENDPOINT_FAILURE), "UCS_ERR_ENDPOINT_FAILURE");
  EXPECT_EQ(ucx_status_name(UCS_ERR_CONNECTION_RESET - 1), "");
  EXPECT_EQ(ucx_status_name(4711), "");
}

TEST(UcxStatus, OfOurOwnFailureIsNone) {
  EXPECT_FALSE(error(errc::closed, "ours").ucx_status());
  EXPECT_EQ(error(errc::busy, "UCX's", UCS_ERR_BUSY).ucx_status(), UCS_ERR_BUSY);
  served_region served(100);
  std::vector<std::byte> into(100);
  EXPECT_FALSE(thrown_status([&] { served.region.read_at(1, into); }));
  request refused = served.region.start_read_at(1, into);
  EXPECT_EQ(refused.error(), errc::out_of_range);
  EXPECT_FALSE(refused.ucx_status());
  EXPECT_FALSE(request().ucx_status());
}

TEST(UcxStatus, OfACallIsInItsException) {
  simulated_pair pair;
  std::vector<std::byte> bytes(100);
  const auto failing = [&](call which, ucs_status_t status, auto tried) {
    pair.network.faults().fail(which, status);
    EXPECT_EQ(thrown_status(tried), status);
  };
  failing(call::mem_map, UCS_ERR_INVALID_PARAM, [&] {
    const memory_region exposed(pair.owner_context, std::span<std::byte>(bytes), access::read);
  });
  failing(call::worker_create, UCS_ERR_NO_MEMORY, [&] { worker{pair.owner_context}; });
  failing(call::worker_get_address, UCS_ERR_IO_ERROR, [&] { (void)pair.owner.address(); });
  failing(call::worker_get_address, UCS_ERR_IO_ERROR, [&] { (void)pair.owner.attributes(); });
  failing(call::worker_query, UCS_ERR_BUSY, [&] { (void)pair.owner.attributes(); });
  failing(call::context_query, UCS_ERR_UNSUPPORTED, [&] { (void)pair.owner_context.attributes(); });
  failing(call::listener_create, UCS_ERR_NO_MEMORY,
          [&] { listener(pair.owner, socket_address("127.0.0.1:0"), {}); });
  const worker_address there = pair.owner.address();
  failing(call::ep_create, UCS_ERR_UNREACHABLE, [&] { endpoint(pair.reader, there); });
}

TEST(UcxStatus, OfARefusedConnectionIsUcxs) {
  simulated_pair_options sides;
  sides.link.refused_status = UCS_ERR_NOT_CONNECTED;
  simulated_pair pair(sides);
  const socket_address nobody("127.0.0.1:9");
  EXPECT_EQ(thrown_status([&] { endpoint(pair.reader, nobody); }), UCS_ERR_NOT_CONNECTED);
  EXPECT_EQ(thrown_status([&] {
              endpoint(pair.reader, {"127.0.0.1", nobody.port()});
            }),
            UCS_ERR_NOT_CONNECTED);
}

TEST(UcxStatus, OfALostConnectionIsThatOfItsOperations) {
  served_region served(1000);
  served.connection.wait_connected();
  served.pair.owner_process.stop();
  std::vector<std::byte> into(100);
  request read = served.region.start_read_at(0, into);
  request given_up = served.region.start_read_at(0, into);
  given_up.cancel();
  std::future<message_info> later = served.region.start_read_at(0, into).to_future();
  EXPECT_FALSE(read.ucx_status()) << "it is in flight";
  served.pair.owner_process.kill();
  const std::optional<int> status = thrown_status([&] { read.wait(); });
  ASSERT_TRUE(status);
  EXPECT_LT(*status, 0);
  EXPECT_NE(ucx_status_name(*status), "");
  EXPECT_EQ(read.ucx_status(), status);
  ASSERT_TRUE(
      served.network().run_until([&] { return later.wait_for(0s) == std::future_status::ready; }));
  EXPECT_EQ(thrown_status([&] { later.get(); }), status);
  EXPECT_EQ(given_up.error(), errc::canceled);
  EXPECT_FALSE(given_up.ucx_status()) << "that was not UCX";
  const request none = served.region.start_read_at(0, into);
  EXPECT_EQ(none.error(), errc::connection_reset);
  EXPECT_EQ(none.ucx_status(), status);
  EXPECT_EQ(thrown_status([&] { served.region.write_at(0, into); }), status);
  EXPECT_EQ(thrown_status([&] { served.connection.send(1, into); }), status);
}

TEST(UcxStatus, OfALostConnectionIsToldWithItsEnd) {
  simulated_pair pair;
  std::optional<connection_end> told;
  endpoint_options options;
  options.events.on_closed = [&](const connection_end& end) { told = end; };
  endpoint connection = pair.connect(std::move(options));
  connection.wait_connected();
  const std::vector<std::byte> large = pattern(1U << 20U);  // waits for a receive
  const request waiting = connection.start_send(1, large);
  pair.owner_process.kill();
  ASSERT_TRUE(pair.network.run_until([&] {
    pair.reader.progress();
    return told.has_value();
  }));
  ASSERT_TRUE(told->ucx_status);
  EXPECT_EQ(waiting.ucx_status(), told->ucx_status);
  EXPECT_NE(ucx_status_name(*told->ucx_status), "");
}

TEST(UcxStatus, OfAPeerThatLeavesIsNone) {
  simulated_pair pair;
  std::optional<connection_end> told;
  endpoint_options options;
  options.events.on_closed = [&](const connection_end& end) { told = end; };
  endpoint connection = pair.connect(std::move(options));
  std::optional<endpoint> back;
  pair.owner.on_message(1, [&](const message& came) { back = came.peer(); });
  connection.send(active_message{1}, {});
  ASSERT_TRUE(pair.network.run_until([&] { return back.has_value(); }));
  request closing = back->start_close();
  ASSERT_TRUE(pair.network.run_until([&] {
    pair.reader.progress();
    return told.has_value();
  }));
  EXPECT_EQ(told->reason, errc::closed_by_peer);
  EXPECT_FALSE(told->ucx_status);
}

TEST(UcxStatus, OfATransferThatItsConnectionSurvivesIsItsOwn) {
  served_region served(1000, over_hardware());
  served.connection.wait_connected();
  ASSERT_EQ(served.region.transfer_method(), transfer_method::rma);
  std::vector<std::byte> into(100);
  served.network().faults().fail_late(call::get, UCS_ERR_IO_ERROR);
  request read = served.region.start_read_at(0, into);
  EXPECT_EQ(thrown_status([&] { read.wait(); }), UCS_ERR_IO_ERROR);
  EXPECT_EQ(read.error(), errc::io_error);
  EXPECT_FALSE(served.connection.status());
  served.network().faults().fail_late(call::get, UCS_ERR_IO_ERROR);
  served.region.post_read_at(0, into);
  EXPECT_EQ(thrown_status([&] { served.region.flush(); }), UCS_ERR_IO_ERROR);
  const read_piece pieces[] = {{0, into}};
  served.network().faults().fail_late(call::get, UCS_ERR_NO_MEMORY);
  EXPECT_EQ(thrown_status([&] { served.region.start_read_batch(pieces).wait(); }),
            UCS_ERR_NO_MEMORY);
  served.region.read_at(0, into);  // and nothing is left of it
  served.region.flush();
}

}  // namespace
}  // namespace ucx::test
