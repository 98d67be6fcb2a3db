// Whatever has a handler may be destroyed inside of it: the handler, and what it holds, live until
// it returns, and it is not called again.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/simulated/simulated_address.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "ucx/buffer.hpp"
#include "ucx/connection_manager.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/progress_loop.hpp"
#include "ucx/remote_region.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

/// Counts the calls of one handler, each of which has to outlive what it does.
struct watched_calls {
  /// Returns a handler that does `what`, which destroys the object whose handler it is.
  template <class What>
  auto of(What what) {
    return [this, what, own = std::make_shared<int>()](auto&&... told) {
      ++count;
      const struct look {
        std::weak_ptr<int> own;
        ~look() { EXPECT_FALSE(own.expired()) << "the handler was destroyed while it ran"; }
      } last{own};
      return what(std::forward<decltype(told)>(told)...);
    };
  }

  int count = 0;
};

simulated_pair_options with_little_room() {
  simulated_pair_options options;
  options.owner_worker.message_window = 16U << 10U;
  return options;
}

void listener_in_its_accept_handler(watched_calls& calls) {
  simulated_pair pair;
  std::optional<endpoint> accepted;
  std::optional<listener> door;
  door.emplace(pair.owner, any_port, calls.of([&](connection_request request) {
    accepted.emplace(pair.owner, std::move(request));
    door.reset();
  }));
  const socket_address where = door->address();
  const endpoint connection(pair.reader, where);
  EXPECT_FALSE(door.has_value());
  EXPECT_EQ(connection.state(), connection_state::active) << "what was accepted lives on";
  std::error_code ec;
  const endpoint late(pair.reader, where, {}, ec);
  EXPECT_EQ(ec, errc::connection_refused);
}

void listener_that_refuses_in_its_accept_handler(watched_calls& calls) {
  simulated_pair pair;
  std::optional<listener> door;
  door.emplace(pair.owner, any_port, calls.of([&](connection_request) { door.reset(); }));
  const socket_address where = door->address();
  std::error_code ec;
  const endpoint none(pair.reader, where, {}, ec);
  EXPECT_TRUE(ec);
  EXPECT_FALSE(door.has_value());
}

void listener_in_on_established(watched_calls& calls) {
  simulated_pair pair;
  std::optional<listener> door;
  listener_options options;
  options.events.on_established =
      calls.of([&](const endpoint&, const connection_report&) { door.reset(); });
  door.emplace(pair.owner, any_port, std::move(options));
  const endpoint connection(pair.reader, door->address());
  pair.network.advance(1ms);
  EXPECT_FALSE(door.has_value());
  EXPECT_EQ(connection.state(), connection_state::active);
}

void listener_in_on_refused(watched_calls& calls) {
  simulated_pair pair;
  std::optional<listener> door;
  listener_options options;
  options.terms = connection_terms{.require_rdma = true};
  options.events.on_refused = calls.of([&](const connection_end&) { door.reset(); });
  door.emplace(pair.owner, any_port, std::move(options));
  const socket_address where = door->address();
  std::error_code ec;
  const endpoint none(pair.reader, where, {}, ec);
  EXPECT_EQ(ec, errc::no_rdma);
  pair.network.advance(1ms);
  EXPECT_FALSE(door.has_value());
}

void listener_in_on_closed(watched_calls& calls) {
  simulated_pair pair;
  std::optional<listener> door;
  listener_options options;
  options.events.on_closed = calls.of([&](const connection_end&) { door.reset(); });
  door.emplace(pair.owner, any_port, std::move(options));
  endpoint first(pair.reader, door->address());
  endpoint second(pair.reader, door->address());
  first.close();
  pair.network.advance(2s);
  EXPECT_FALSE(door.has_value());
  second.close();
  pair.network.advance(2s);
}

void endpoint_in_on_established(watched_calls& calls) {
  simulated_pair pair;
  std::optional<endpoint> connection;
  endpoint_options options;
  options.events.on_established =
      calls.of([&](const endpoint&, const connection_report&) { connection.reset(); });
  connection.emplace(pair.connect(std::move(options)));
  pair.network.advance(100ms);
  EXPECT_FALSE(connection.has_value());
  EXPECT_EQ(pair.reader.connections(), 0U);
}

void endpoint_in_on_refused(watched_calls& calls) {
  simulated_pair pair;
  std::optional<endpoint> connection;
  endpoint_options options;
  options.wait = connect_wait::none;
  options.events.on_refused = calls.of([&](const connection_end&) { connection.reset(); });
  connection.emplace(pair.reader, nobody, std::move(options));
  pair.network.advance(100ms);
  EXPECT_FALSE(connection.has_value());
}

void endpoint_in_on_closed(watched_calls& calls) {
  simulated_pair pair;
  listener door(pair.owner, any_port);
  std::optional<endpoint> connection;
  endpoint_options options;
  options.events.on_closed = calls.of([&](const connection_end&) { connection.reset(); });
  connection.emplace(pair.reader, door.address(), std::move(options));
  door.close(close_mode::abort);
  pair.network.advance(2s);
  EXPECT_FALSE(connection.has_value());
}

void endpoint_in_on_sent(watched_calls& calls) {
  simulated_messages both;
  std::optional<endpoint> connection(both.pair.connect());
  connection->wait_connected();
  message_handlers handlers;
  handlers.on_sent = calls.of([&](std::uint64_t, std::error_code) { connection.reset(); });
  connection->set_message_handlers(std::move(handlers));
  const std::vector<std::byte> bytes = pattern(1000);
  std::error_code ec;
  connection->post_send(1, bytes, 7, {}, ec);
  EXPECT_FALSE(ec);
  both.settle();
  EXPECT_FALSE(connection.has_value());
}

void endpoint_in_on_room(watched_calls& calls) {
  simulated_messages both(with_little_room());
  std::optional<endpoint> connection(both.pair.connect());
  connection->wait_connected();
  message_handlers handlers;
  handlers.on_writable = calls.of([&] { connection.reset(); });
  connection->set_message_handlers(std::move(handlers));
  const std::vector<std::byte> bytes = pattern(1000);
  std::error_code full;
  while (!full)
    full = connection->start_send(2, bytes, {.backpressure = backpressure::fail}).error();
  both.settle();
  while (both.receiver().take(tag_match::any())) {
  }
  both.settle();
  EXPECT_FALSE(connection.has_value());
}

void endpoint_in_on_refused_of_messages(watched_calls& calls) {
  simulated_messages both;
  std::optional<endpoint> connection(both.pair.connect());
  connection->wait_connected();
  message_handlers handlers;
  handlers.on_refused = calls.of([&](const message_info&) { connection.reset(); });
  connection->set_message_handlers(std::move(handlers));
  connection->send(active_message{5}, pattern(10), {.until = send_until::reusable});
  both.settle();
  EXPECT_FALSE(connection.has_value());
}

/// Drives a worker until it is gone; the peer has left in between.
void drive_to_its_end(simulated_pair& pair, std::optional<worker>& doomed) {
  worker& last = *doomed;
  endpoint connection(pair.reader, last.address());
  for (int i = 0; i < 100 && doomed; ++i) {
    if (i == 50) connection.close(close_mode::abort);
    last.progress();
    pair.network.advance(1ms);
  }
  EXPECT_FALSE(doomed.has_value());
}

void worker_in_on_established(watched_calls& calls) {
  simulated_pair pair;
  std::optional<worker> doomed;
  auto told = calls.of([&](const endpoint& peer, const connection_report&) {
    EXPECT_EQ(peer.state(), connection_state::active);
    doomed.reset();
  });
  doomed.emplace(pair.owner_context);
  doomed->set_connection_events({.on_established = std::move(told)});
  drive_to_its_end(pair, doomed);
}

void worker_in_on_closed(watched_calls& calls) {
  simulated_pair pair;
  std::optional<worker> doomed;
  auto told = calls.of([&](const connection_end&) { doomed.reset(); });
  doomed.emplace(pair.owner_context);
  doomed->set_connection_events({.on_closed = std::move(told)});
  drive_to_its_end(pair, doomed);
}

void worker_in_on_message(watched_calls& calls) {
  simulated_pair pair;
  std::optional<worker> doomed(std::in_place, pair.owner_context);
  endpoint connection(pair.reader, doomed->address());
  worker& last = *doomed;
  last.on_message(5, calls.of([&](const message& came) {
    EXPECT_TRUE(holds_pattern(came.data()));
    doomed.reset();
  }));
  for (int i = 0; i < 100 && doomed; ++i) {
    if (i == 50) {
      request send =
          connection.start_send(active_message{5}, pattern(10), {.memory = send_memory::copied});
      EXPECT_FALSE(send.error());
      last.progress();
      continue;
    }
    last.progress();
    pair.network.advance(1ms);
  }
  EXPECT_FALSE(doomed.has_value());
  std::error_code ignored;
  connection.close(close_mode::abort, ignored);
}

void region_in_on_notify(watched_calls& calls) {
  simulated_pair pair;
  std::vector<std::byte> memory(100);
  std::optional<memory_region> owned(std::in_place, pair.owner_context,
                                     std::span<std::byte>(memory), access::read_write);
  endpoint connection = pair.connect();
  remote_region region(connection, owned->descriptor());
  owned->on_notify(calls.of([&](const notification& said) {
    EXPECT_EQ(said.value, 3U);
    owned.reset();
  }));
  request first = region.start_notify(3);
  request second = region.start_notify(4);
  pair.network.advance(10ms);
  EXPECT_FALSE(owned.has_value());
  EXPECT_TRUE(first.done());
  EXPECT_TRUE(second.done());
  std::vector<std::byte> into(10);
  std::error_code ec;
  region.read_at(0, into, {}, ec);
  EXPECT_TRUE(ec) << "the memory is not exposed any more";
}

void remote_region_in_then(watched_calls& calls) {
  simulated_pair pair;
  std::vector<std::byte> memory = pattern(100);
  const memory_region owned(pair.owner_context, std::span<std::byte>(memory), access::read);
  std::optional<endpoint> connection(pair.connect());
  std::optional<remote_region> region(std::in_place, *connection, owned.descriptor());
  std::vector<std::byte> into(100);
  request read = region->start_read_at(0, into);
  read.then(calls.of([&](std::error_code ec) {
    EXPECT_FALSE(ec);
    region.reset();
    connection.reset();
    read = request();
  }));
  pair.network.advance(10ms);
  EXPECT_FALSE(region.has_value());
  EXPECT_TRUE(holds_pattern(into));
}

connection_manager_options impatient() {
  connection_manager_options options;
  options.connect_timeout = 50ms;
  options.reconnect.first_delay = 10ms;
  options.reconnect.max_delay = 10ms;
  options.reconnect.max_attempts = 3;
  return options;
}

void manager_in_on_attempt(watched_calls& calls) {
  simulated_pair pair;
  std::optional<connection_manager> manager;
  connection_manager_options options = impatient();
  options.on_attempt = calls.of([&](const managed_peer&) {
    manager.reset();
    return true;
  });
  manager.emplace(pair.reader, std::move(options));
  manager->add("one", nobody);
  manager->add("two", nobody);
  for (int i = 0; i < 100; ++i) {
    pair.reader.progress();
    pair.network.advance(5ms);
  }
  EXPECT_FALSE(manager.has_value());
  EXPECT_EQ(pair.reader.connections(), 0U);
}

void manager_in_on_change(watched_calls& calls) {
  simulated_pair pair;
  const listener door(pair.owner, any_port);
  std::optional<connection_manager> manager;
  connection_manager_options options = impatient();
  options.on_change = calls.of([&](const managed_peer& peer) {
    EXPECT_EQ(peer.state, connection_state::active);
    manager.reset();
  });
  manager.emplace(pair.reader, std::move(options));
  manager->add("one", door.address());
  manager->add("two", {"127.0.0.1", door.address().port()});
  for (int i = 0; i < 100; ++i) {
    pair.reader.progress();
    pair.network.advance(5ms);
  }
  EXPECT_FALSE(manager.has_value());
  EXPECT_EQ(pair.reader.connections(), 0U);
}

/// Has the manager destroyed, once, when it tells of a peer that has come to be `when`.
void end_manager_when(connection_state when, std::optional<connection_manager>& manager,
                      connection_manager_options& options, watched_calls& calls) {
  options.on_change = [when, last = calls.of([&manager](const managed_peer&) { manager.reset(); })](
                          const managed_peer& peer) {
    if (peer.state == when) last(peer);
  };
}

/// `close` is called on a manager that ends while it tells that a peer closes.
template <class Close>
void manager_in_on_change_of_a_close(watched_calls& calls, Close close) {
  simulated_pair pair;
  const listener door(pair.owner, any_port);
  std::optional<connection_manager> manager;
  connection_manager_options options = impatient();
  end_manager_when(connection_state::closing, manager, options, calls);
  manager.emplace(pair.reader, std::move(options));
  manager->add("one", door.address());
  manager->wait_active("one");
  close(*manager);
  EXPECT_FALSE(manager.has_value());
  EXPECT_EQ(pair.reader.connections(), 0U);
}

void manager_in_on_change_of_its_close(watched_calls& calls) {
  manager_in_on_change_of_a_close(calls, [](connection_manager& of) { of.close(); });
}

void manager_in_on_change_of_a_peers_close(watched_calls& calls) {
  manager_in_on_change_of_a_close(
      calls, [](connection_manager& of) { of.close("one", close_mode::flush); });
}

void manager_in_on_change_while_it_waits(watched_calls& calls) {
  simulated_pair pair;
  std::optional<connection_manager> manager;
  connection_manager_options options = impatient();
  end_manager_when(connection_state::connecting, manager, options, calls);
  manager.emplace(pair.reader, std::move(options));
  manager->add("one", nobody);
  EXPECT_THROW(manager->wait_active("one"), ucx::error);
  EXPECT_FALSE(manager.has_value());
  EXPECT_EQ(pair.reader.connections(), 0U);
}

void pool_where_its_buffer_dies(watched_calls& calls) {
  std::optional<buffer_pool> pool(std::in_place, buffer_pool_options{.size = 100, .count = 1});
  buffer taken = pool->take();
  pool->when_available(calls.of([&] { pool.reset(); }));
  taken = buffer();
  EXPECT_FALSE(pool.has_value());
}

void pool_that_has_one_at_once(watched_calls& calls) {
  std::optional<buffer_pool> pool(std::in_place, buffer_pool_options{.size = 100, .count = 2});
  const buffer taken = pool->take();
  pool->when_available(calls.of([&] { pool.reset(); }));
  EXPECT_FALSE(pool.has_value());
  EXPECT_EQ(taken.size(), 100U) << "buffers outlive their pool";
}

void pool_whose_buffer_was_sent(watched_calls& calls) {
  simulated_messages both;
  std::optional<buffer_pool> pool(std::in_place, buffer_pool_options{.size = 100, .count = 1});
  request send = both.sender.start_send(1, pool->take());
  if (pool->available() > 0) {  // it was copied at once
    pool->when_available(calls.of([&] { pool.reset(); }));
  } else {
    pool->when_available(calls.of([&] { pool.reset(); }));
    both.settle();
  }
  EXPECT_FALSE(pool.has_value());
  EXPECT_EQ(both.take(1).length(), 100U);
}

void loop_in_a_handler(watched_calls& calls, bool once) {
  simulated_pair pair;
  worker other(pair.reader_context);
  std::optional<progress_loop> loop(std::in_place);
  loop->add(pair.reader);
  loop->add(other);
  other.post(calls.of([&] { loop.reset(); }));
  if (once) {
    loop->run_once(1s);
  } else {
    loop->run(std::stop_token());
  }
  EXPECT_FALSE(loop.has_value());
}

void loop_that_runs(watched_calls& calls) { loop_in_a_handler(calls, false); }
void loop_that_runs_once(watched_calls& calls) { loop_in_a_handler(calls, true); }

void timer_in_its_function(watched_calls& calls) {
  simulated_pair pair;
  std::optional<scheduled_call> timer;
  timer.emplace(pair.reader.call_after(1ms, calls.of([&] { timer.reset(); })));
  pair.network.advance(10ms);
  EXPECT_FALSE(timer.has_value());
}

void part_of_progress_in_its_function(watched_calls& calls) {
  simulated_pair pair;
  std::optional<scheduled_call> part;
  part.emplace(pair.reader.call_in_progress(progress_phase::after, repetition::every_round,
                                            calls.of([&] { part.reset(); })));
  pair.network.advance(10ms);
  EXPECT_FALSE(part.has_value());
}

struct ending {
  const char* name;
  void (*happens)(watched_calls& calls);
};

constexpr ending endings[] = {
    {"ListenerInItsAcceptHandler", listener_in_its_accept_handler},
    {"ListenerThatRefusesInItsAcceptHandler", listener_that_refuses_in_its_accept_handler},
    {"ListenerInOnEstablished", listener_in_on_established},
    {"ListenerInOnRefused", listener_in_on_refused},
    {"ListenerInOnClosed", listener_in_on_closed},
    {"EndpointInOnEstablished", endpoint_in_on_established},
    {"EndpointInOnRefused", endpoint_in_on_refused},
    {"EndpointInOnClosed", endpoint_in_on_closed},
    {"EndpointInOnSent", endpoint_in_on_sent},
    {"EndpointInOnRoom", endpoint_in_on_room},
    {"EndpointInOnRefusedOfMessages", endpoint_in_on_refused_of_messages},
    {"WorkerInOnEstablished", worker_in_on_established},
    {"WorkerInOnClosed", worker_in_on_closed},
    {"WorkerInOnMessage", worker_in_on_message},
    {"RegionInOnNotify", region_in_on_notify},
    {"RemoteRegionInThen", remote_region_in_then},
    {"ManagerInOnAttempt", manager_in_on_attempt},
    {"ManagerInOnChange", manager_in_on_change},
    {"ManagerInOnChangeOfItsClose", manager_in_on_change_of_its_close},
    {"ManagerInOnChangeOfAPeersClose", manager_in_on_change_of_a_peers_close},
    {"ManagerInOnChangeWhileItWaits", manager_in_on_change_while_it_waits},
    {"PoolWhereItsBufferDies", pool_where_its_buffer_dies},
    {"PoolThatHasOneAtOnce", pool_that_has_one_at_once},
    {"PoolWhoseBufferWasSent", pool_whose_buffer_was_sent},
    {"LoopThatRuns", loop_that_runs},
    {"LoopThatRunsOnce", loop_that_runs_once},
    {"TimerInItsFunction", timer_in_its_function},
    {"PartOfProgressInItsFunction", part_of_progress_in_its_function},
};

class EndInHandler : public testing::TestWithParam<ending> {};

TEST_P(EndInHandler, IsItsLastCall) {
  watched_calls calls;
  GetParam().happens(calls);
  EXPECT_EQ(calls.count, 1);
}

INSTANTIATE_TEST_SUITE_P(Objects, EndInHandler, testing::ValuesIn(endings),
                         [](const auto& chosen) { return std::string(chosen.param.name); });

}  // namespace
}  // namespace ucx::test
