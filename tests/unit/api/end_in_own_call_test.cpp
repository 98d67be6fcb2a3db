// An owner may be destroyed within its own blocking call, by a handler that the call runs: the call
// ends as it would have, or with `canceled`, and touches nothing that is gone.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/simulated/simulated_address.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "support/simulated/simulated_server.hpp"
#include "ucx/connection_manager.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"
#include "ucx/many_files.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_file.hpp"
#include "ucx/remote_region.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

/// An owner in memory that is spoiled when it is destroyed. A call that looks at the owner then
/// finds addresses that lead nowhere, and ends the process. One that writes there is found here.
template <class Owner>
class doomed {
 public:
  explicit doomed(Owner&& made) : owner_(new (place_) Owner(std::move(made))) {}
  doomed(const doomed&) = delete;
  doomed& operator=(const doomed&) = delete;
  ~doomed() {
    destroy();
    EXPECT_TRUE(std::all_of(std::begin(place_), std::end(place_), [](std::byte each) {
      return each == spoiled;
    })) << "an owner was written to after its end";
  }

  void destroy() {
    Owner* const last = std::exchange(owner_, nullptr);
    if (last == nullptr) return;
    last->~Owner();
    std::fill(std::begin(place_), std::end(place_), spoiled);
  }
  bool gone() const { return owner_ == nullptr; }
  Owner& operator*() { return *owner_; }
  Owner* operator->() { return owner_; }

 private:
  static constexpr std::byte spoiled{0xa5};
  alignas(Owner) std::byte place_[sizeof(Owner)];
  Owner* owner_;
};

/// Has `by` destroy the owner in its next round, which the owner's call makes.
template <class Owner>
void end_soon(worker& by, doomed<Owner>& owner) {
  by.post([&owner] { owner.destroy(); });
}

/// A server that publishes `notes`, and a client of it.
struct served_client {
  explicit served_client(const simulated_server_options& options = {}, std::size_t size = 100)
      : served(options),
        memory(pattern(size)),
        notes(served.server().publish("notes", std::span<const std::byte>(memory))),
        own(served.connect()) {}

  void end_client_soon() { end_soon(own->worker(), own); }

  simulated_server served;
  std::vector<std::byte> memory;
  publication notes;
  doomed<client> own;
};

TEST(EndInOwnCall, ListOfAClientHasItsNames) {
  served_client on;
  on.end_client_soon();
  const std::vector<entry> found = on.own->list();
  EXPECT_TRUE(on.own.gone());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().name, "notes");
}

TEST(EndInOwnCall, ListOfAClientThatIsAssignedToHasItsNames) {
  served_client on;
  client other = on.served.connect();
  on.own->worker().post([&] { *on.own = std::move(other); });
  EXPECT_EQ(on.own->list().size(), 1U);
  EXPECT_EQ(on.own->list().size(), 1U) << "it is the other client now";
}

TEST(EndInOwnCall, StatOfAClientTellsWhyItFailed) {
  served_client on;
  on.end_client_soon();
  std::error_code ec;
  on.own->stat("missing", {}, ec);
  EXPECT_EQ(ec, errc::no_such_name);
  EXPECT_TRUE(on.own.gone());
}

TEST(EndInOwnCall, OpenOfAClientGivesARegion) {
  served_client on;
  on.end_client_soon();
  remote_region region = on.own->open("notes", access::read);
  EXPECT_TRUE(on.own.gone());
  std::vector<std::byte> into(100);
  region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into));
}

TEST(EndInOwnCall, OpenOfManyNamesGivesRegions) {
  served_client on;
  on.end_client_soon();
  const std::vector<std::string> names{"notes", "missing"};
  const std::vector<open_result> opened = open_many(*on.own, names, access::read);
  EXPECT_TRUE(on.own.gone());
  ASSERT_EQ(opened.size(), 2U);
  EXPECT_FALSE(opened[0].error);
  EXPECT_EQ(opened[1].error, errc::no_such_name);
}

TEST(EndInOwnCall, FetchOfManyNamesGivesBytes) {
  served_client on;
  on.end_client_soon();
  const std::vector<std::string> names{"notes"};
  const std::vector<read_result> fetched = read_many(*on.own, names, 1000);
  EXPECT_TRUE(on.own.gone());
  ASSERT_EQ(fetched.size(), 1U);
  EXPECT_FALSE(fetched.front().error);
  EXPECT_TRUE(holds_pattern(fetched.front().bytes));
}

TEST(EndInOwnCall, VisitOfAClientShowsItsNames) {
  served_client on;
  on.end_client_soon();
  std::size_t shown = 0;
  on.own->visit([&](std::vector<entry>&& some) {
    shown += some.size();
    return true;
  });
  EXPECT_TRUE(on.own.gone());
  EXPECT_EQ(shown, 1U);
}

TEST(EndInOwnCall, VisitorOfAClientMayEndIt) {
  served_client on;
  constexpr std::size_t more_than_a_page = 1000;
  std::vector<publication> others;
  for (std::size_t i = 0; i < more_than_a_page; ++i) {
    others.push_back(on.served.server().publish(std::to_string(i), std::span<const std::byte>()));
  }
  std::size_t pages = 0;
  std::size_t shown = 0;
  on.own->visit([&](std::vector<entry>&& some) {
    on.own.destroy();
    ++pages;
    shown += some.size();
    return true;
  });
  EXPECT_GT(pages, 1U);
  EXPECT_EQ(shown, more_than_a_page + 1);
}

TEST(EndInOwnCall, CloseOfAClientEndsItsConnection) {
  served_client on;
  on.end_client_soon();
  on.own->close();
  EXPECT_TRUE(on.own.gone());
  on.served.network.advance(10ms);
  EXPECT_EQ(on.served.server().statistics().clients, 0U);
}

TEST(EndInOwnCall, ReadOfAFileHasItsBytes) {
  served_client on;
  doomed<remote_file> file(remote_file(*on.own, "notes"));
  end_soon(on.own->worker(), file);
  std::vector<std::byte> into(100);
  EXPECT_EQ(file->read_at(0, into), 100U);
  EXPECT_TRUE(file.gone());
  EXPECT_TRUE(holds_pattern(into));
}

TEST(EndInOwnCall, SyncOfAFileShowsItsBytes) {
  served_client on;
  std::vector<std::byte> memory(100);
  const publication shown = on.served.server().publish("board", memory, access::read_write);
  doomed<remote_file> file(remote_file(*on.own, "board", {.wanted = access::read_write}));
  file->write_at(0, pattern(100));
  end_soon(on.own->worker(), file);
  file->sync();
  EXPECT_TRUE(file.gone());
  EXPECT_TRUE(holds_pattern(memory));
}

TEST(EndInOwnCall, WaitForAConnectionSeesIt) {
  simulated_pair pair;
  doomed<endpoint> connection(pair.connect());
  end_soon(pair.reader, connection);
  connection->wait_connected();
  EXPECT_TRUE(connection.gone());
  EXPECT_EQ(pair.reader.connections(), 0U);
}

TEST(EndInOwnCall, CloseOfAnEndpointIsInOrder) {
  simulated_pair pair;
  doomed<endpoint> connection(pair.connect());
  connection->wait_connected();
  end_soon(pair.reader, connection);
  connection->close();
  EXPECT_TRUE(connection.gone());
  EXPECT_EQ(pair.reader.connections(), 0U);
}

TEST(EndInOwnCall, CloseOfAnEndpointTellsWhyItFailed) {
  simulated_pair pair;
  doomed<endpoint> connection(pair.connect());
  connection->wait_connected();
  const request unanswered = connection->start_flush();
  pair.owner_process.kill();
  end_soon(pair.reader, connection);
  try {
    connection->close();
    ADD_FAILURE() << "closed in order without a peer";
  } catch (const error& failed) {
    EXPECT_EQ(failed.code(), errc::connection_reset);
    EXPECT_NE(std::string(failed.what()).find("closing the connection to"), std::string::npos);
  }
  EXPECT_TRUE(connection.gone());
}

TEST(EndInOwnCall, CancelOfAnEndpointCounts) {
  simulated_pair pair;
  doomed<endpoint> connection(pair.connect());
  connection->wait_connected();
  std::vector<std::byte> into(10);
  const request receiving = connection->start_receive(1, into);
  end_soon(pair.reader, connection);
  EXPECT_EQ(connection->cancel_all(1s), 0U);
  EXPECT_TRUE(connection.gone());
  EXPECT_EQ(receiving.error(), errc::canceled);
}

TEST(EndInOwnCall, CancelOfAnEndpointMayBeTheLastOfItsWorker) {
  simulated_pair pair;
  doomed<worker> driven(worker(pair.reader_context));
  doomed<endpoint> connection(endpoint(*driven, pair.owner.address()));
  connection->wait_connected();
  driven->post([&] {
    connection.destroy();
    driven.destroy();
  });
  EXPECT_EQ(connection->cancel_all(1s), 0U);
  EXPECT_TRUE(driven.gone());
  EXPECT_EQ(pair.network.live().workers, 2U);
}

TEST(EndInOwnCall, CancelOfAWorkerCounts) {
  simulated_pair pair;
  doomed<worker> driven(worker(pair.owner_context));
  end_soon(*driven, driven);
  EXPECT_EQ(driven->cancel_all(1s), 0U);
  EXPECT_TRUE(driven.gone());
  EXPECT_EQ(pair.network.live().workers, 2U);
}

TEST(EndInOwnCall, RunOfAWorkerReturns) {
  simulated_pair pair;
  doomed<worker> driven(worker(pair.owner_context));
  end_soon(*driven, driven);
  driven->run(std::stop_token());
  EXPECT_TRUE(driven.gone());
  EXPECT_EQ(pair.network.live().workers, 2U);
}

TEST(EndInOwnCall, RunOfAWorkerGoesOnForItsConnections) {
  simulated_pair pair;
  doomed<worker> driven(worker(pair.owner_context));
  std::optional<endpoint> connection(std::in_place, *driven, pair.reader.address());
  connection->wait_connected();
  driven->call_after(100ms, [&] { connection.reset(); }).detach();
  end_soon(*driven, driven);
  driven->run(std::stop_token());
  EXPECT_TRUE(driven.gone());
  EXPECT_FALSE(connection.has_value());
  EXPECT_EQ(pair.network.live().workers, 2U);
}

TEST(EndInOwnCall, CloseOfAListenerClosesItsConnections) {
  simulated_pair pair;
  doomed<listener> door(listener(pair.owner, any_port));
  const endpoint peer(pair.reader, door->address());
  pair.network.advance(1ms);
  end_soon(pair.owner, door);
  door->close(close_mode::flush);
  EXPECT_TRUE(door.gone());
  EXPECT_EQ(pair.owner.connections(), 0U);
  EXPECT_EQ(pair.network.live().listeners, 0U);
}

TEST(EndInOwnCall, CloseOfAListenerThatMovesClosesItsConnections) {
  simulated_pair pair;
  doomed<listener> door(listener(pair.owner, any_port));
  const endpoint peer(pair.reader, door->address());
  pair.network.advance(1ms);
  std::optional<listener> other;
  pair.owner.post([&] {
    other.emplace(std::move(*door));
    door.destroy();
  });
  door->close(close_mode::flush);
  EXPECT_TRUE(door.gone());
  EXPECT_EQ(pair.owner.connections(), 0U);
  std::error_code ec;
  const endpoint late(pair.reader, other->address(), {}, ec);
  EXPECT_TRUE(ec) << "it takes nobody any more";
}

TEST(EndInOwnCall, WaitForAPeerIsCanceled) {
  simulated_pair pair;
  listener_options options;
  options.manual_accept = true;
  listener door(pair.owner, any_port, std::move(options));
  doomed<listener::acceptance> next(door.accept());
  end_soon(pair.owner, next);
  std::error_code ec;
  const connection_request none = next->wait({}, ec);
  EXPECT_EQ(ec, errc::canceled);
  EXPECT_TRUE(next.gone());
}

TEST(EndInOwnCall, WaitForATimerIsOver) {
  simulated_pair pair;
  doomed<scheduled_call> timer(pair.reader.call_after(1h, [] {}));
  end_soon(pair.reader, timer);
  EXPECT_TRUE(timer->wait_for(1s));
  EXPECT_TRUE(timer.gone());
}

TEST(EndInOwnCall, CloseOfAManagerClosesItsConnections) {
  simulated_pair pair;
  const listener door(pair.owner, any_port);
  doomed<connection_manager> manager(connection_manager(pair.reader, {}));
  manager->add("one", door.address());
  manager->wait_active("one");
  end_soon(pair.reader, manager);
  manager->close();
  EXPECT_TRUE(manager.gone());
  EXPECT_EQ(pair.reader.connections(), 0U);
}

TEST(EndInOwnCall, PostThatWaitsForRoomIsCanceled) {
  simulated_pair pair;
  std::vector<std::byte> memory = pattern(100);
  const memory_region owned(pair.owner_context, std::span<std::byte>(memory), access::read);
  const endpoint connection = pair.connect();
  doomed<remote_region> region(remote_region(connection, owned.descriptor()));
  pair.owner_process.stop();
  std::vector<std::byte> into(100);
  for (int i = 0; i < 1024; ++i) region->post_read_at(0, into);
  end_soon(pair.reader, region);
  try {
    region->post_read_at(0, into);
    ADD_FAILURE() << "posted by a region that is gone";
  } catch (const error& failed) {
    EXPECT_EQ(failed.code(), errc::canceled);
    EXPECT_NE(std::string(failed.what()).find("posting a read of 100 bytes"), std::string::npos);
  }
  EXPECT_TRUE(region.gone());
  pair.owner_process.resume();
}

/// A read over a connection whose peer has stopped.
struct unanswered_read {
  request start() { return region.start_read_at(0, into); }
  /// Destroys the request in the next round, and starts another one, which may get its memory.
  void replace_soon() {
    pair.reader.post([this] {
      reading.destroy();
      other = start();
    });
  }
  ~unanswered_read() { pair.owner_process.resume(); }

  simulated_pair pair;
  std::vector<std::byte> memory = pattern(100);
  memory_region owned{pair.owner_context, std::span<std::byte>(memory), access::read};
  endpoint connection = pair.connect();
  remote_region region{connection, owned.descriptor()};
  std::vector<std::byte> into = std::vector<std::byte>(100);
  doomed<request> reading = [this] {
    connection.wait_connected();
    pair.owner_process.stop();
    return doomed<request>(start());
  }();
  request other;
};

TEST(EndInOwnCall, WaitForARequestIsCanceled) {
  unanswered_read on;
  on.replace_soon();
  std::error_code ec;
  on.reading->wait(ec);
  EXPECT_EQ(ec, errc::canceled);
  EXPECT_TRUE(on.reading.gone());
  EXPECT_FALSE(on.other.done());
}

TEST(EndInOwnCall, WaitForARequestForAWhileSeesItsEnd) {
  unanswered_read on;
  on.replace_soon();
  EXPECT_TRUE(on.reading->wait_for(10s));
  EXPECT_TRUE(on.reading.gone());
  EXPECT_FALSE(on.other.done());
}

TEST(EndInOwnCall, WaitForARequestSaysWhatItWas) {
  unanswered_read on;
  end_soon(on.pair.reader, on.reading);
  try {
    on.reading->wait();
    ADD_FAILURE() << "it was answered";
  } catch (const error& failed) {
    EXPECT_EQ(failed.code(), errc::canceled);
    EXPECT_NE(std::string(failed.what()).find("read of 100 bytes"), std::string::npos);
  }
  EXPECT_TRUE(on.reading.gone());
}

/// Handlers run in a wait for peers where several threads may use the worker.
worker_options shared_by_threads() {
  worker_options options;
  options.thread_mode = thread_mode::multi;
  return options;
}

constexpr std::size_t more_than_a_socket_holds = std::size_t{8} << 20U;

TEST(EndInOwnCall, CloseOfAMemoryRegionWithdrawsIt) {
  simulated_pair_options options;
  options.owner_worker = shared_by_threads();
  simulated_pair pair(options);
  std::vector<std::byte> memory = pattern(more_than_a_socket_holds);
  doomed<memory_region> owned(
      memory_region(pair.owner_context, std::span<std::byte>(memory), access::read));
  endpoint connection = pair.connect();
  connection.wait_connected();
  remote_region region(connection, owned->descriptor(),
                       {.transfer_method = transfer_method::message});
  std::vector<std::byte> into(memory.size());
  request reading = region.start_read_at(0, into);
  pair.reader_process.stop();
  pair.network.advance(10ms);
  end_soon(pair.owner, owned);
  owned->close();
  EXPECT_TRUE(owned.gone());
  pair.reader_process.resume();
  std::error_code ec;
  reading.wait(ec);
  EXPECT_TRUE(ec) << "the peer took nothing, and was dropped";
}

/// A client has begun to read what a server publishes, and has stopped.
struct stopped_reader : served_client {
  stopped_reader()
      : served_client(with_shared_worker(), more_than_a_socket_holds),
        region(own->open("notes", access::read)),
        into(memory.size()),
        reading(region.start_read_at(0, into)) {
    served.client_process().stop();
    served.network.advance(10ms);
  }
  ~stopped_reader() { served.client_process().resume(); }

  static simulated_server_options with_shared_worker() {
    simulated_server_options options;
    options.server.worker = shared_by_threads();
    return options;
  }

  remote_region region;
  std::vector<std::byte> into;
  request reading;
};

TEST(EndInOwnCall, CloseOfAPublicationWithdrawsIt) {
  stopped_reader on;
  doomed<publication> shown(std::move(on.notes));
  end_soon(on.served.server().worker(), shown);
  shown->close();
  EXPECT_TRUE(shown.gone());
  EXPECT_TRUE(on.served.server().list().empty());
}

TEST(EndInOwnCall, CloseOfAServerWithdrawsItsNames) {
  stopped_reader on;
  doomed<server> serving(std::move(*on.served.made));
  on.served.made.reset();
  end_soon(serving->worker(), serving);
  serving->close();
  EXPECT_TRUE(serving.gone());
  EXPECT_FALSE(on.notes.is_open());
}

}  // namespace
}  // namespace ucx::test
