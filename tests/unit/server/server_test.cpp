// Servers and clients over the simulated network: names, rights, revocation, and every death.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/simulated/simulated_server.hpp"
#include "ucx/error.hpp"
#include "ucx/stream.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

// A container that dies with the call can not be published.
template <class Range>
concept publishable = requires(server& publisher, Range&& bytes) {
  (void)publisher.publish("name", std::forward<Range>(bytes), access::read);
};
static_assert(!publishable<std::vector<std::byte>>);
static_assert(publishable<std::vector<std::byte>&>);
static_assert(publishable<std::span<std::byte>>);
static_assert(publishable<std::byte (&)[8]>);

simulated_server_options quick() {
  simulated_server_options options;
  for (worker_options* each : {&options.server.worker, &options.client.worker}) {
    each->connect_timeout = 2s;
    each->operation_timeout = 5s;
    each->close_timeout = 1s;
    each->heartbeat_interval = 200ms;
    each->heartbeat_timeout = 1s;
  }
  return options;
}

TEST(Server, TellsItsUrlOrByACodeWhyItHasNone) {
  simulated_server served;
  std::error_code ec = errc::busy;
  EXPECT_NE(served.server().url("a b", ec).find("/a%20b"), std::string::npos);
  EXPECT_FALSE(ec);
  served.server().close();
  EXPECT_EQ(served.server().url("a b", ec), "");
  EXPECT_EQ(ec, errc::closed);
  EXPECT_THROW(static_cast<void>(served.server().url()), error);
  simulated_server_options hidden;
  hidden.server.bind = "";
  simulated_server unseen(hidden);
  EXPECT_EQ(unseen.server().url({}, ec), "");
  EXPECT_EQ(ec, errc::not_supported);
}

TEST(Server, IsNotAskedForNamesThatNobodyLooksAt) {
  simulated_server served;
  client reader = served.connect();
  const std::uint64_t before = reader.statistics().requests;
  std::error_code ec;
  reader.visit({}, {}, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  EXPECT_EQ(reader.visit_directory("", {}, {}, ec), 0U);
  EXPECT_EQ(ec, errc::invalid_argument);
  EXPECT_THROW(reader.visit({}), error);
  EXPECT_EQ(reader.statistics().requests, before);
}

TEST(Server, ServesAName) {
  for (const bool by_listener : {true, false}) {
    simulated_server served;
    std::vector<std::byte> memory = pattern(100'000);
    const publication weights =
        served.server().publish("weights", std::span<std::byte>(memory), access::read_write);
    client reader = served.connect(by_listener);
    const entry found = reader.stat("weights");
    EXPECT_EQ(found.name, "weights");
    EXPECT_EQ(found.size, 100'000U);
    EXPECT_EQ(found.granted, access::read_write);
    EXPECT_EQ(found.type, entry_type::memory);
    EXPECT_EQ(reader.list(), std::vector<entry>{found});
    remote_region region = reader.open("weights", access::read_write);
    std::vector<std::byte> into(100'000);
    region.read_at(0, into);
    EXPECT_TRUE(holds_pattern(into));
    region.write_at(10, pattern(50, 9));
    region.flush();
    EXPECT_TRUE(holds_pattern(std::span(memory).subspan(10, 50), 9));
    EXPECT_EQ(reader.statistics().opens, 1U);
    EXPECT_EQ(served.server().statistics().opens, 1U);
    EXPECT_EQ(served.server().statistics().clients, 1U);
    EXPECT_FALSE(reader.server_version().empty());
  }
}

TEST(Server, AllocatesMemory) {
  simulated_server served;
  publication cache = served.server().allocate("cache", 5000, access::read_write);
  EXPECT_EQ(cache.bytes().size(), 5000U);
  client writer = served.connect();
  {
    ostream out(writer.open("cache", access::write));
    out << "hello" << std::flush;
    EXPECT_TRUE(out.good());
  }
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(cache.bytes().data()), 5), "hello");
  EXPECT_EQ(static_cast<int>(cache.bytes()[5]), 0);
}

TEST(Server, RefusesBadNames) {
  simulated_server served;
  std::vector<std::byte> memory(10);
  const std::span<std::byte> bytes(memory);
  ucx::server& server = served.server();
  std::error_code ec;
  for (const std::string& bad :
       {std::string(), std::string(1025, 'a'), std::string("\xff"), std::string("a\0b", 3)}) {
    EXPECT_FALSE(server.publish(bad, bytes, access::read, {}, ec).is_open());
    EXPECT_EQ(ec, errc::bad_name);
  }
  const publication taken = server.publish("taken", bytes, access::read);
  EXPECT_FALSE(server.publish("taken", bytes, access::read, {}, ec).is_open());
  EXPECT_EQ(ec, errc::already_exists);
  const publication longest = server.publish(std::string(1024, 'a'), bytes, access::read, {}, ec);
  EXPECT_FALSE(ec);
  client reader = served.connect();
  reader.open(std::string(1024, 'a'));
  reader.open("", access::read, {}, ec);
  EXPECT_EQ(ec, errc::bad_name);
  try {
    reader.open("missing");
    FAIL();
  } catch (const error& failed) {
    EXPECT_EQ(failed.code(), errc::no_such_name);
    EXPECT_NE(std::string(failed.what()).find("\"missing\""), std::string::npos);
  }
  reader.stat("missing", {}, ec);
  EXPECT_EQ(ec, errc::no_such_name);
}

TEST(Server, ChecksRightsWhenOpened) {
  simulated_server served;
  std::vector<std::byte> memory(10);
  const publication readable = served.server().publish("r", std::span<const std::byte>(memory));
  const publication writable =
      served.server().publish("w", std::span<std::byte>(memory), access::write);
  client peer = served.connect();
  std::error_code ec;
  for (const access wanted : {access::write, access::read_write}) {
    peer.open("r", wanted, {}, ec);
    EXPECT_EQ(ec, errc::permission_denied);
  }
  for (const access wanted : {access::read, access::read_write}) {
    peer.open("w", wanted, {}, ec);
    EXPECT_EQ(ec, errc::permission_denied);
  }
  remote_region region = peer.open("w", access::write);
  std::byte into{};
  region.read_at(0, {&into, 1}, {}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
}

TEST(Server, ListsManyNamesInPages) {
  simulated_server served;
  std::vector<std::byte> memory(10);
  std::vector<publication> all;
  for (int i = 0; i < 20'000; ++i) {
    all.push_back(
        served.server().publish("name " + std::to_string(i), std::span<const std::byte>(memory)));
  }
  client reader = served.connect();
  const std::vector<entry> found = reader.list();
  EXPECT_EQ(found.size(), all.size());
  EXPECT_TRUE(std::is_sorted(found.begin(), found.end(),
                             [](const entry& a, const entry& b) { return a.name < b.name; }));
  EXPECT_EQ(served.server().list(), found);
}

TEST(Publication, RevokesAtItsEnd) {
  simulated_server served;
  std::vector<std::byte> memory = pattern(1000);
  std::optional<publication> gone =
      served.server().publish("gone", std::span<std::byte>(memory), access::read_write);
  client reader = served.connect();
  client other = served.connect();
  remote_region region = reader.open("gone", access::read_write);
  remote_region asleep = other.open("gone");
  istream in(region);
  EXPECT_NE(in.get(), EOF);
  gone.reset();
  std::error_code ec;
  std::byte into{};
  region.read_at(0, {&into, 1}, {}, ec);
  EXPECT_EQ(ec, errc::revoked);
  asleep.read_at(0, {&into, 1}, {}, ec);
  EXPECT_EQ(ec, errc::revoked);
  reader.open("gone", access::read, {}, ec);
  EXPECT_EQ(ec, errc::no_such_name);
  in.seekg(999);
  in.clear();
  in.sync();
  EXPECT_EQ(in.get(), EOF);
  EXPECT_TRUE(in.bad());
  EXPECT_FALSE(in.eof());
  EXPECT_EQ(in.error(), errc::revoked);
  // The name is free again, and the new region is another.
  const publication again = served.server().publish("gone", std::span<const std::byte>(memory));
  reader.open("gone").read_at(0, {&into, 1});
  region.read_at(0, {&into, 1}, {}, ec);
  EXPECT_EQ(ec, errc::revoked);
}

TEST(Publication, TellsClientsOnceItIsWithdrawn) {
  simulated_server served;
  std::vector<std::byte> memory(1000);
  publication gone = served.server().publish("gone", std::span<const std::byte>(memory));
  client reader = served.connect();
  remote_region region = reader.open("gone");
  gone.close();
  gone.close();
  EXPECT_FALSE(gone.is_open());
  EXPECT_TRUE(gone.bytes().empty());
  served.network.advance(10ms);
  reader.worker().progress();
  served.network.advance(10ms);
  reader.worker().progress();
  // Known here already: nothing is asked.
  EXPECT_EQ(region.status(), errc::revoked);
}

TEST(Server, EndsWithItsClientsTold) {
  simulated_server served(quick());
  std::vector<std::byte> memory(1000);
  publication p = served.server().publish("p", std::span<const std::byte>(memory));
  client reader = served.connect();
  remote_region region = reader.open("p");
  served.made.reset();
  EXPECT_FALSE(p.is_open());
  std::error_code ec;
  std::byte into{};
  region.read_at(0, {&into, 1}, {}, ec);
  EXPECT_TRUE(ec == errc::connection_reset || ec == errc::revoked) << ec;
  reader.list({}, ec);
  EXPECT_EQ(ec, errc::connection_reset);
  EXPECT_EQ(reader.status(), errc::connection_reset);
}

TEST(Server, RefusesEverythingOnceClosed) {
  simulated_server served;
  std::vector<std::byte> memory(10);
  served.server().close();
  served.server().close();
  std::error_code ec;
  const publication p =
      served.server().publish("p", std::span<std::byte>(memory), access::read, {}, ec);
  EXPECT_EQ(ec, errc::closed);
  EXPECT_FALSE(p.is_open());
  try {
    served.server().url();
    FAIL();
  } catch (const error& failed) {
    EXPECT_EQ(failed.code(), errc::closed);
  }
}

TEST(Server, ClosesItsPublicationsUrls) {
  simulated_server served;
  std::vector<std::byte> memory(10);
  const publication p = served.server().publish("p", std::span<const std::byte>(memory));
  EXPECT_EQ(p.url(), served.server().url("p"));
  const server_address before = served.server().address();
  served.server().close();
  EXPECT_TRUE(p.url().empty());
  EXPECT_EQ(served.server().address().socket, before.socket);
}

TEST(Server, TellsReplacedContentByItsGeneration) {
  simulated_server served;
  std::vector<std::byte> memory(10);
  publication p = served.server().publish("p", std::span<const std::byte>(memory));
  client reader = served.connect();
  const entry before = reader.stat("p");
  p = publication();
  p = served.server().publish("p", std::span<const std::byte>(memory));
  EXPECT_GT(reader.stat("p").generation, before.generation);
}

TEST(Server, EndsInTimeHoweverManyClientsHaveStopped) {
  simulated_server_options options = quick();
  options.server.worker.heartbeat_timeout = 1s;
  simulated_server served(options);
  constexpr std::size_t clients = 8;
  std::vector<std::byte> memory = pattern(8 << 20U);
  std::vector<publication> names;
  std::vector<client> readers;
  std::vector<remote_region> regions;
  std::vector<std::vector<std::byte>> into(clients, std::vector<std::byte>(memory.size()));
  std::vector<request> reads;
  for (std::size_t i = 0; i < clients; ++i) {
    names.push_back(
        served.server().publish("p" + std::to_string(i), std::span<const std::byte>(memory)));
    readers.push_back(served.connect());
    regions.push_back(readers.back().open("p" + std::to_string(i)));
    reads.push_back(regions.back().start_read_at(0, into[i]));
    served.client_process().stop();
  }
  // The answers begin, and do not go on: nobody takes them.
  for (int i = 0; i < 20; ++i) {
    served.network.advance(1ms);
    served.server().worker().progress();
  }
  const auto begin = served.process.api().now();
  served.server().close();
  EXPECT_LT(served.process.api().now() - begin, 3s);
  for (const publication& each : names) EXPECT_FALSE(each.is_open());
}

TEST(Server, OutlivedByItsPublications) {
  std::vector<std::byte> memory(10);
  std::optional<publication> late;
  {
    simulated_server served;
    late.emplace(served.server().publish("late", std::span<const std::byte>(memory)));
  }
  EXPECT_FALSE(late->is_open());
  late->close();
}

TEST(Server, TakesSoManyClientsAndNoMore) {
  simulated_server_options options = quick();
  options.server.max_clients = 2;
  simulated_server served(options);
  std::optional<client> first(served.connect());
  const client second = served.connect();
  std::error_code ec;
  const client third = served.connect(ec);
  EXPECT_EQ(ec, errc::busy);
  first.reset();
  served.network.advance(2s);
  client fourth = served.connect();
  EXPECT_TRUE(fourth.list().empty());
}

TEST(Server, HasManyClients) {
  simulated_server served;
  std::vector<std::byte> memory = pattern(10'000);
  const publication p = served.server().publish("p", std::span<const std::byte>(memory));
  std::vector<client> clients;
  std::vector<remote_region> regions;
  for (int i = 0; i < 64; ++i) {
    clients.push_back(served.connect(i % 2 == 0));
    regions.push_back(clients.back().open("p"));
  }
  EXPECT_EQ(served.server().statistics().clients, 64U);
  std::vector<std::byte> into(10'000);
  for (remote_region& region : regions) {
    region.read_at(0, into);
    EXPECT_TRUE(holds_pattern(into));
  }
}

TEST(Client, LivesOnInItsRegions) {
  simulated_server served;
  std::vector<std::byte> memory = pattern(1000);
  const publication p = served.server().publish("p", std::span<const std::byte>(memory));
  std::optional<client> reader(served.connect());
  remote_region region = reader->open("p");
  reader.reset();
  std::vector<std::byte> into(1000);
  region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into));
}

TEST(Client, ClosesForEverybody) {
  simulated_server served;
  std::vector<std::byte> memory(1000);
  const publication p = served.server().publish("p", std::span<const std::byte>(memory));
  client reader = served.connect();
  client same = reader.share();
  remote_region region = reader.open("p");
  reader.close();
  reader.close();
  std::error_code ec;
  std::byte into{};
  region.read_at(0, {&into, 1}, {}, ec);
  EXPECT_EQ(ec, errc::closed);
  same.list({}, ec);
  EXPECT_EQ(ec, errc::closed);
  EXPECT_EQ(same.status(), errc::closed);
}

TEST(Client, OfAPeerThatIsNoServerIsRefused) {
  simulated_server_options options = quick();
  simulated_server served(options);
  fake_process& plain = served.network.add_process("no server");
  const context parent = served.context_in(plain);
  worker driver(parent);
  plain.on_pump([&] { driver.progress(); });
  std::error_code ec;
  fake_process& own = served.network.add_process("lost client");
  const client lost = detail::core_access::make_client(served.context_in(own), driver.address(),
                                                       options.client, ec);
  EXPECT_EQ(ec, errc::connection_refused);
  plain.on_pump({});
}

TEST(Client, OfAServerThatWasClosedIsRefused) {
  simulated_server served(quick());
  served.server().close();
  std::error_code ec;
  const client late = served.connect(ec, false);
  EXPECT_EQ(ec, errc::connection_refused);
}

/// Kills or stops the server when so many of its messages have been sent.
class ServerDeath : public testing::TestWithParam<bool> {};

TEST_P(ServerDeath, EndsEveryCallInTime) {
  const bool kill = GetParam();
  for (int step = 0; step < 40; ++step) {
    simulated_server served(quick());
    std::vector<std::byte> memory(100'000);
    publication p = served.server().publish("p", std::span<const std::byte>(memory));
    int pumps = 0;
    served.process.on_pump([&] {
      if (++pumps < step) {
        served.made->worker().progress();
      } else if (pumps == step) {
        kill ? served.process.kill() : served.process.stop();
      }
    });
    const auto begin = served.network.now();
    std::error_code ec;
    {
      client reader = served.connect(ec);
      if (!ec) reader.list({}, ec);
      if (!ec) {
        remote_region region = reader.open("p", access::read, {}, ec);
        std::vector<std::byte> into(100'000);
        if (!ec) region.read_at(0, into, {}, ec);
      }
      if (ec) {
        EXPECT_TRUE(ec == errc::connection_reset || ec == errc::timed_out ||
                    ec == errc::connection_refused || ec == errc::unreachable)
            << ec << " at step " << step;
      }
    }
    EXPECT_LT(served.network.now() - begin, 8s) << step;
    if (!kill) served.process.resume();
    served.process.on_pump([&] {
      if (served.made && !kill) served.made->worker().progress();
    });
    p.close();
  }
}

INSTANTIATE_TEST_SUITE_P(Each, ServerDeath, testing::Bool(),
                         [](const auto& kill) { return kill.param ? "Killed" : "Stopped"; });

TEST(Client, DeathLeavesTheServerServing) {
  simulated_server served(quick());
  std::vector<std::byte> memory = pattern(200'000);
  publication p = served.server().publish("p", std::span<std::byte>(memory), access::read_write);
  for (int step = 0; step < 30; ++step) {
    std::error_code ec;
    {
      int pumps = 0;
      fake_process* victim = nullptr;
      served.process.on_pump([&] {
        served.made->worker().progress();
        if (victim != nullptr && ++pumps == step) victim->kill();
      });
      client dying = served.connect(ec);
      if (!ec) {
        victim = &served.client_process();
        remote_region region = dying.open("p", access::read_write, {}, ec);
        std::vector<std::byte> into(200'000);
        if (!ec) region.read_at(0, into, {}, ec);
        if (!ec) region.write_at(0, into, {}, ec);
      }
    }
    served.process.on_pump([&] { served.made->worker().progress(); });
    client living = served.connect();
    EXPECT_EQ(living.list().size(), 1U);
  }
  served.network.advance(10s);
  for (int i = 0; i < 100; ++i) served.server().worker().progress();
  EXPECT_EQ(served.server().statistics().clients, 0U);
}

/// One script over calls of UCX that fail, are late, and overtake each other, at random.
class ServerChaos : public testing::TestWithParam<std::uint64_t> {};

TEST_P(ServerChaos, EndsWithTheRightBytesOrAnError) {
  for (std::uint64_t seed = GetParam(); seed < GetParam() + 20; ++seed) {
    SCOPED_TRACE(seed);
    simulated_server_options options = quick();
    options.seed = seed;
    options.link.error_handler_first = seed % 3 == 0;
    simulated_server served(options);
    std::vector<std::byte> memory = pattern(300'000);
    publication p = served.server().publish("p", std::span<std::byte>(memory), access::read_write);
    chaos probabilities;
    // Not what makes contexts and workers: without those there is nothing to test.
    probabilities.calls = {call::am_send,           call::ep_create, call::ep_flush,
                           call::mem_map,           call::rkey_pack, call::worker_arm,
                           call::worker_get_address};
    probabilities.fail = seed % 2 == 0 ? 0.02 : 0;
    probabilities.fail_late = seed % 4 == 1 ? 0.02 : 0;
    probabilities.delay = 0.2;
    served.network.faults().randomize(probabilities);
    served.network.faults().reorder(0.3);
    const auto begin = served.network.now();
    {
      std::error_code ec;
      client peer = served.connect(ec, seed % 2 == 0);
      std::vector<std::byte> into(300'000);
      for (int round = 0; !ec && round < 5; ++round) {
        const std::size_t names = peer.list({}, ec).size();
        EXPECT_EQ(names, ec ? 0U : 1U);
        if (ec) break;
        remote_region region = peer.open("p", access::read_write, {}, ec);
        if (ec) break;
        region.read_at(0, into, {}, ec);
        if (!ec) {
          EXPECT_TRUE(holds_pattern(into));
          region.write_at(1000, std::span(into).subspan(1000, 1000), {}, ec);
        }
        if (!ec) region.flush({}, ec);
      }
    }
    EXPECT_LT(served.network.now() - begin, 60s);
    EXPECT_TRUE(holds_pattern(memory));
    served.network.faults().clear();
    // Whatever happened to that client, the server serves the next.
    client healthy = served.connect(true);
    EXPECT_EQ(healthy.list().size(), 1U);
    p.close();
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ServerChaos, testing::Values(0U, 20U, 40U, 60U, 80U));

}  // namespace
}  // namespace ucx::test
