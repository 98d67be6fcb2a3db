// Listeners, by the rows B1 to B6, B25 and B30 of docs/coming-from.md.
#include <gtest/gtest.h>

#include <atomic>
#include <coroutine>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/connection_conformance.hpp"
#include "support/fire.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"

namespace ucx::test {
namespace {

TEST_P(ConformanceB, B1_B2_ListensOnOneAddressAndTellsItsPort) {
  const listener door(server_, any_port);
  EXPECT_EQ(door.address().host(), "127.0.0.1");
  EXPECT_NE(door.address().port(), 0);
  const socket_address by_interface = interface_addresses("lo").front();
  const listener other(server_, by_interface);
  EXPECT_EQ(other.address().host(), by_interface.host());
  std::error_code ec;
  const endpoint elsewhere(client_, socket_address("127.0.0.2", door.address().port()), {}, ec);
  EXPECT_EQ(ec, errc::connection_refused) << "only on that address";
}

TEST_P(ConformanceB, B3_B6_HandlersDecideAndKnowThePeer) {
  std::mutex mutex;
  std::vector<endpoint> accepted;
  const listener door(server_, any_port, [&](connection_request request) {
    const std::lock_guard guard(mutex);
    EXPECT_EQ(request.local().host(), "127.0.0.1");
    accepted.emplace_back(server_, std::move(request));
  });
  endpoint connection(client_, door.address());
  {
    const std::lock_guard guard(mutex);
    ASSERT_EQ(accepted.size(), 1U);
    EXPECT_EQ(accepted[0].peer(), connection.local());
    EXPECT_EQ(accepted[0].local(), connection.peer());
  }
  EXPECT_EQ(connection.peer(), door.address());
  connection.close();
}

fire serve(listener& door, worker& on, std::vector<endpoint>& accepted, std::atomic<bool>& over) {
  try {
    for (;;) accepted.emplace_back(on, co_await door.accept());
  } catch (const ucx::error& failed) {
    over = failed.code() == errc::closed;
  }
}

TEST_P(ConformanceB, B3_PeersAreAwaited) {
  std::vector<endpoint> accepted;
  std::atomic<bool> over{false};
  listener_options options;
  options.awaited = true;
  listener door(server_, any_port, std::move(options));
  serve(door, server_, accepted, over);
  {
    endpoint first(client_, door.address());
    endpoint second(client_, door.address());
    EXPECT_EQ(door.connections(), 2U);
  }
  door.close();
  EXPECT_TRUE(until([&] { return over.load(); }));
  EXPECT_EQ(accepted.size(), 2U);
}

/// What a handler may return: it goes on when the flush that it awaits is done.
struct awaited_flush {
  request inner;
  bool await_ready() const noexcept { return inner.done(); }
  void await_suspend(std::coroutine_handle<> coroutine) {
    inner.then([coroutine](std::error_code) { coroutine.resume(); });
  }
  void await_resume() {}
};

TEST_P(ConformanceB, B4_HandlersThatReturnAnAwaitableAreRunToTheirEnd) {
  std::mutex mutex;
  std::vector<endpoint> accepted;
  std::atomic<int> ended{0};
  struct told_flush : awaited_flush {
    std::atomic<int>* ended;
    void await_resume() { ++*ended; }
  };
  const listener door(server_, any_port, [&](connection_request request) {
    const std::lock_guard guard(mutex);
    accepted.emplace_back(server_, std::move(request));
    return told_flush{{accepted.back().start_flush()}, &ended};
  });
  endpoint connection(client_, door.address());
  EXPECT_TRUE(until([&] { return ended == 1; }));
  connection.close();
}

TEST_P(ConformanceB, B5_B15_RefusalsTellTheirReason) {
  const listener door(server_, any_port, [](connection_request request) {
    request.reject(errc::permission_denied, "members only");
  });
  try {
    const endpoint refused(client_, door.address());
    FAIL();
  } catch (const ucx::error& failed) {
    EXPECT_EQ(failed.code(), errc::permission_denied);
    EXPECT_NE(std::string(failed.what()).find("members only"), std::string::npos) << failed.what();
  }
  std::mutex mutex;
  std::optional<connection_refusal> told;
  endpoint_options options;
  options.wait = connect_wait::none;
  options.on_refused = [&](const connection_refusal& refusal) {
    const std::lock_guard guard(mutex);
    told = refusal;
  };
  const endpoint refused(client_, door.address(), std::move(options));
  ASSERT_TRUE(until([&] {
    const std::lock_guard guard(mutex);
    return told.has_value();
  }));
  EXPECT_EQ(told->reason, errc::permission_denied);
  EXPECT_EQ(told->words, "members only");
  const listener silent(server_, any_port, [](connection_request request) { request.reject(); });
  std::error_code ec;
  const endpoint plain(client_, silent.address(), {}, ec);
  EXPECT_EQ(ec, errc::connection_refused);
}

TEST_P(ConformanceB, B25_AcceptedConnectionsInheritTheListenersTerms) {
  listener_options options;
  options.terms = connection_terms{.info = bytes("of the door")};
  const listener door(server_, any_port, std::move(options));
  const endpoint connection(client_, door.address());
  EXPECT_EQ(connection.peer_info(), bytes("of the door"));
  std::mutex mutex;
  std::optional<endpoint> accepted;
  const listener other(server_, any_port, [&](connection_request request) {
    const std::lock_guard guard(mutex);
    accepted.emplace(server_, std::move(request),
                     endpoint_options{.terms = connection_terms{.info = bytes("its own")}});
  });
  const endpoint own(client_, other.address());
  EXPECT_EQ(own.peer_info(), bytes("its own"));
}

TEST_P(ConformanceB, B25_B30_ListenersCountAndCloseTheirConnections) {
  for (const bool keeps : {true, false}) {
    listener door(server_, any_port);
    std::vector<endpoint> connections;
    for (int i = 0; i < 3; ++i) connections.emplace_back(client_, door.address());
    EXPECT_TRUE(until([&] { return door.connections() == 3; }));
    EXPECT_EQ(client_.connections(), 3U);
    if (keeps) {
      door.close();
      connections[0].flush();
      EXPECT_EQ(client_.connections(), 3U);
      continue;
    }
    close(door, close_mode::flush);
    EXPECT_TRUE(until([&] { return client_.connections() == 0; }));
  }
}

}  // namespace
}  // namespace ucx::test
