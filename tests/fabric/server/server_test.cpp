// Servers and clients over TCP, in one process: threads, files, URLs, the shared client.
#include "ucx/server.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/basics/effort.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/transports/ipv6.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/fstream.hpp"
#include "ucx/stream.hpp"
#include "ucx/version.hpp"

namespace ucx::test {
namespace {

TEST(ServerByUrl, IsReachedByItsUrlAndByItsWorkerAddress) {
  ucx_server served;
  std::vector<std::byte> memory = pattern(3'000'000);
  const publication p = served.publish("a b/ü", std::span<std::byte>(memory), access::read_write);
  EXPECT_EQ(p.url(), served.url() + "/a%20b/%C3%BC");
  client by_url(served.url());
  client by_address(served.address().worker);
  for (client* each : {&by_url, &by_address}) {
    remote_region region = each->open("a b/ü", access::read_write);
    std::vector<std::byte> into(memory.size());
    region.read_at(0, into);
    EXPECT_TRUE(holds_pattern(into));
    region.write_at(5, std::span(into).first(1000));
    region.flush();
    region.write_at(5, std::span(into).subspan(5, 1000));
    region.flush();
  }
  EXPECT_EQ(by_url.server(), url(served.url()));
  EXPECT_TRUE(by_address.server().empty());
  EXPECT_FALSE(by_url.transports().empty());
}

TEST(ServerByUrl, ConnectsWithinTheDefaultWhereNoTimeIsSaid) {
  const ucx_server served;
  client unhurried(served.url(), {.worker = {.connect_timeout = std::chrono::seconds(0)}});
  EXPECT_TRUE(unhurried.list().empty());
}

TEST(ServerByUrl, RefusesToListenWhereOthersCanReachIt) {
  for (const char* where : {"0.0.0.0:0", "[::]:0"}) {
    std::error_code ec;
    const ucx_server refused({.bind = where}, ec);
    EXPECT_EQ(ec, errc::not_secure) << where;
  }
  const ucx_server told({.bind = "0.0.0.0:0", .insecure = true});
  EXPECT_TRUE(told.address().socket.is_wildcard());
  EXPECT_EQ(told.url().find("0.0.0.0"), std::string::npos);
}

TEST(ServerByUrl, TellsWhyItCanNotListen) {
  const ucx_server first;
  std::error_code ec;
  const ucx_server second({.bind = to_string(first.address().socket)}, ec);
  EXPECT_EQ(ec, errc::address_in_use);
  for (const char* bad :
       {"127.0.0.1", "127.0.0.1:x", ":1", "127.0.0.1:70000", "nonsense", "[::1:0"}) {
    const ucx_server refused({.bind = bad}, ec);
    EXPECT_EQ(ec, errc::bad_address) << bad;
  }
  const ucx_server nowhere({.bind = "no.such.host.invalid:0"}, ec);
  EXPECT_EQ(ec, errc::host_not_found);
  const ucx_server local({.bind = "localhost:0"});
  EXPECT_TRUE(local.address().socket.is_loopback());
}

/// A context of UCX speaks one of the two families: each has a server, and both the same memory.
TEST(TwoServers, PublishTheSameMemoryByIpv4AndIpv6) {
  if (ucx_version() < version_number{1, 14, 0}) {
    GTEST_SKIP() << "UCX " << to_string(ucx_version()) << " has no IPv6 on the loopback";
  }
  if (!has_ipv6()) GTEST_SKIP() << "this machine has no ::1";
  const context_options by_six{.configuration = {{"TCP_AF_PRIO", "inet6"}}};
  std::error_code taken = make_error_code(errc::address_in_use);
  std::optional<ucx_server> first;
  std::optional<ucx_server> second;
  for (int i = 0; i < 20 && taken == errc::address_in_use; ++i) {  // by another process, at ::1
    first.emplace(server_options{.bind = "127.0.0.1:0"});
    const std::string port = std::to_string(first->address().socket.port());
    second.emplace(server_options{.bind = "[::1]:" + port, .context = by_six}, taken);
  }
  ASSERT_FALSE(taken) << taken.message();
  server& four = *first;
  server& six = *second;
  EXPECT_EQ(six.address().socket, socket_address("::1", four.address().socket.port()));
  std::vector<std::byte> memory = pattern(100'000);
  const publication by_four = four.publish("matrix", std::span<std::byte>(memory), access::read);
  const publication also_by_six = six.publish("matrix", std::span<std::byte>(memory), access::read);
  client clients[] = {client(four.url()), client(six.url(), {.context = by_six})};
  for (client& each : clients) {
    remote_region region = each.open("matrix");
    std::vector<std::byte> into(memory.size());
    region.read_at(0, into);
    EXPECT_TRUE(holds_pattern(into));
    memory[7] = std::byte{1};
    region.read_at(7, std::span(into).first(1));
    EXPECT_EQ(into[0], std::byte{1}) << "it is no copy";
    memory[7] = pattern(8)[7];
  }
  std::error_code ec;
  const client unprepared(six.url(), {}, ec);
  EXPECT_EQ(ec, errc::not_supported) << ec.message();
}

TEST(ServerByUrl, ThatDoesNotListenHasNoUrl) {
  const ucx_server hidden({.bind = ""});
  EXPECT_TRUE(hidden.address().socket.empty());
  EXPECT_THROW(hidden.url(), error);
  client by_address(hidden.address().worker);
  EXPECT_TRUE(by_address.list().empty());
  ifstream in(by_address, "none");
  EXPECT_NE(in.error_message().find("none"), std::string::npos) << in.error_message();
}

TEST(ServerByUrl, IsReachedThroughItsAddressFile) {
  const temporary_directory directory;
  ucx_server hidden({.bind = ""});
  std::vector<std::byte> memory = pattern(100);
  const publication p = hidden.publish("a b", std::span<std::byte>(memory), access::read);
  hidden.publish_address(directory / "address");
  EXPECT_EQ(hidden.url("a b"), "ucx+file://" + (directory / "address").string() + "/a%20b");
  ifstream in(hidden.url("a b"));
  std::vector<std::byte> into(memory.size());
  in.read(reinterpret_cast<char*>(into.data()), 100);
  EXPECT_TRUE(holds_pattern(into)) << in.error_message();
  std::error_code ec;
  hidden.publish_address(directory / "none/address", ec);
  EXPECT_EQ(ec, errc::no_such_name);
  hidden.close();
  EXPECT_FALSE(std::filesystem::exists(directory / "address"));
  hidden.publish_address(directory / "address", ec);
  EXPECT_EQ(ec, errc::closed);
}

TEST(ServerByUrl, ServesFilesAndTellsWhichItCanNot) {
  const temporary_directory directory;
  const auto file = directory / "numbers";
  {
    std::ofstream out(file);
    for (int i = 0; i < 200'000; ++i) out << i << '\n';
  }
  ucx_server served;
  const publication p = served.publish_file("numbers", file);
  EXPECT_EQ(p.size(), std::filesystem::file_size(file));
  EXPECT_TRUE(p.bytes().empty());
  std::error_code ec;
  EXPECT_FALSE(served.publish_file("w", file, access::read_write, ec).is_open());
  EXPECT_EQ(ec, errc::not_supported);
  EXPECT_FALSE(served.publish_file("d", directory / ".", access::read, ec).is_open());
  EXPECT_EQ(ec, errc::not_supported);
  EXPECT_FALSE(served.publish_file("m", directory / "missing", access::read, ec).is_open());
  EXPECT_EQ(ec, errc::no_such_name);
  client reader(served.url());
  EXPECT_EQ(reader.stat("numbers").type, entry_type::file);
  istream in(reader.open("numbers"));
  int expected = 0;
  for (int number = 0; in >> number; ++expected) ASSERT_EQ(number, expected);
  EXPECT_EQ(expected, 200'000);
  EXPECT_TRUE(in.eof());
  reader.open("numbers", access::write, {}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
}

TEST(ServerByUrl, TellsThatAFileWasCutOff) {
  const temporary_directory directory;
  const auto file = directory / "shrinking";
  std::ofstream(file) << std::string(5'000'000, 'x');
  ucx_server served;
  const publication p = served.publish_file("shrinking", file);
  client reader(served.url());
  istream in(reader.open("shrinking"), {.buffer_size = 65536, .queue_depth = 2});
  std::string first(1000, '\0');
  in.read(first.data(), 1000);
  EXPECT_TRUE(in.good());
  std::filesystem::resize_file(file, 100'000);
  std::vector<char> rest(5'000'000);
  in.read(rest.data(), 4'999'000);
  EXPECT_TRUE(in.bad());
  EXPECT_FALSE(in.eof());
  EXPECT_EQ(in.error(), errc::content_changed);
}

TEST(ServerByUrl, ServesManyThreadsOfOneClient) {
  ucx_server served;
  std::vector<std::byte> memory = pattern(1'000'000);
  const publication p = served.publish("p", std::span<std::byte>(memory), access::read);
  client shared(served.url());
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < 25; ++round) {
        remote_region region = shared.open("p");
        std::vector<std::byte> into(40'000);
        const std::uint64_t at = static_cast<std::uint64_t>(round) * 10'000;
        region.read_at(at, into);
        if (holds_pattern(into, 0, at) && shared.stat("p").size == 1'000'000) ++good;
      }
    });
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(good.load(), 200);
}

TEST(ServerByUrl, AnswersTenThousandOpensAtOnce) {
  ucx_server served;
  std::vector<std::byte> memory = pattern(1000);
  const publication p = served.publish("p", std::span<std::byte>(memory), access::read);
  std::atomic<int> opened{0};
  std::vector<std::thread> threads;
  client shared(served.url());
  for (int t = 0; t < 20; ++t) {
    threads.emplace_back([&] {
      std::vector<remote_region> regions;
      for (int i = 0; i < 500; ++i) regions.push_back(shared.open("p"));
      opened += static_cast<int>(regions.size());
    });
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(opened.load(), 10'000);
  EXPECT_EQ(served.statistics().opens, 10'000U);
}

TEST(ServerByUrl, GivesMemoryBackToWhoeverWithdrawsIt) {
  // Server and publication withdraw at once: whichever returns, nobody reads the memory any more.
  for (int round = 0; round < effort(20, 6); ++round) {
    ucx_server served;
    auto memory = std::make_unique<std::vector<std::byte>>(pattern(4 << 20U));
    publication p = served.publish("p", std::span<std::byte>(*memory), access::read);
    client reader(served.url());
    remote_region region = reader.open("p");
    std::atomic<bool> going{false};
    std::jthread reading([&] {
      std::vector<std::byte> into(4 << 20U);
      std::error_code ec;
      while (!ec) {
        region.read_at(0, into, {}, ec);
        EXPECT_TRUE(ec || holds_pattern(into));
        going = true;
      }
      // Which of the two the client is told first is open: the name has gone, or the server leaves.
      EXPECT_TRUE(ec == errc::revoked || ec == errc::closed_by_peer || ec == errc::connection_reset)
          << ec.message();
    });
    while (!going) std::this_thread::yield();
    std::jthread withdrawing([&] { served.close(); });
    while (p.is_open()) std::this_thread::yield();
    p.close();
    std::fill(memory->begin(), memory->end(), std::byte{0xee});
    memory.reset();
  }
}

TEST(ServerByUrl, LivesBesideOthersInOneProcess) {
  std::vector<std::byte> memory = pattern(1000);
  std::vector<ucx_server> servers(5);
  std::vector<publication> all;
  for (server& each : servers) {
    all.push_back(each.publish("same name", std::span<std::byte>(memory), access::read));
  }
  for (server& each : servers) {
    client reader(each.url());
    EXPECT_EQ(reader.list().size(), 1U);
  }
  servers.erase(servers.begin());
  EXPECT_FALSE(all.front().is_open());
  EXPECT_TRUE(all.back().is_open());
}

TEST(SharedClient, IsOneForAServer) {
  ucx_server served;
  std::vector<std::byte> memory(10);
  const publication p = served.publish("p", std::span<std::byte>(memory), access::read);
  const url where(served.url());
  {
    client first = client::shared(where);
    client second = client::shared(where.with_name("p"));
    first.list();
    EXPECT_EQ(second.statistics().requests, first.statistics().requests);
    EXPECT_EQ(served.statistics().clients, 1U);
  }
  client later = client::shared(where);
  later.list();
  EXPECT_EQ(served.statistics().clients_served, 1U);
}

// Handing it out looks at its connection, and calls no handler meanwhile: one that asks for the
// client, too, would wait for itself.
TEST(SharedClient, IsHandedOutInAHandlerOfItsWorkerMeanwhile) {
  ucx_server served;
  const url where(served.url());
  client first = client::shared(where);
  std::uint64_t requests = 0;
  first.worker().post([&] {
    const client inside = client::shared(where);
    requests = inside.statistics().requests;
  });
  first.list();
  EXPECT_GT(requests, 0U) << "it is the same client";
  requests = 0;
  first.worker().post([&] { requests = client::shared(where).statistics().requests; });
  const client second = client::shared(where);
  EXPECT_EQ(requests, 0U);
  first.worker().progress();
  EXPECT_EQ(requests, second.statistics().requests);
}

TEST(SharedClient, ConnectsAnewWhenItsServerIsAnother) {
  std::string where;
  std::vector<std::byte> memory(10);
  std::optional<ucx_server> served(std::in_place);
  where = served->url();
  const std::string bind = to_string(served->address().socket);
  client first = client::shared(url(where));
  served.reset();
  std::error_code ec;
  first.list({}, ec);
  EXPECT_EQ(ec, errc::connection_reset);
  client none = client::shared(url(where), ec);
  EXPECT_EQ(ec, errc::connection_refused);
  served.emplace(server_options{.bind = bind});
  client second = client::shared(url(where));
  EXPECT_TRUE(second.list().empty());
}

TEST(SharedClient, OfAServerThatCameAgainIsNoticedByTheNextOpen) {
  std::vector<std::byte> memory = pattern(1000);
  std::optional<ucx_server> served(std::in_place);
  publication p = served->publish("p", std::span<const std::byte>(memory));
  const std::string bind = to_string(served->address().socket);
  const std::string where = p.url();
  ifstream idle(where);  // keeps the connection, and nobody looks at it any more
  ASSERT_TRUE(idle.is_open());
  served.reset();
  served.emplace(server_options{.bind = bind});
  p = served->publish("p", std::span<const std::byte>(memory));
  ifstream next(where);
  EXPECT_TRUE(next.is_open()) << next.error_message();
  EXPECT_EQ(next.get(), std::to_integer<int>(memory[0]));
}

/// Takes connections in its backlog, and never says anything.
class silent_socket {
 public:
  silent_socket() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const socket_address any("127.0.0.1:0");
    ::sockaddr_in own = {};
    ::socklen_t size = sizeof own;
    if (::bind(socket_, any.native(), any.native_size()) != 0 || ::listen(socket_, 100) != 0 ||
        ::getsockname(socket_, reinterpret_cast<::sockaddr*>(&own), &size) != 0) {
      throw std::runtime_error("no socket to be had");
    }
    port_ = ntohs(own.sin_port);
  }
  ~silent_socket() { ::close(socket_); }
  silent_socket(const silent_socket&) = delete;
  silent_socket& operator=(const silent_socket&) = delete;
  std::uint16_t port() const { return port_; }

 private:
  int socket_;
  std::uint16_t port_ = 0;
};

TEST(SharedClient, OfASilentServerCostsEverybodyOneDeadline) {
  const silent_socket silent;
  const url where("127.0.0.1", silent.port(), "");
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<int> failures{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 6; ++i) {
      threads.emplace_back([&] {
        std::error_code ec;
        const client none = client::shared(where, ec);
        if (ec == errc::timed_out) ++failures;
      });
    }
  }
  EXPECT_EQ(failures, 6);
  // One after the other would take half a minute. Some may come after the first attempt has ended.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(25));
}

TEST(SharedClient, IsRefusedInAForkedChild) {
  ucx_server served;
  client parent = client::shared(url(served.url()));
  const ::pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::error_code ec;
    // Left as it is at _exit: destroying a connection of the parent's would break that one.
    new client(client::shared(url("ucx://127.0.0.1:9"), ec));
    ::_exit(ec == errc::forked_child ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(parent.list().empty());
}

TEST(ClientByUrl, TellsWhatIsWrong) {
  std::error_code ec;
  const client bad("ucx:/127.0.0.1:1/a", {}, ec);
  EXPECT_EQ(ec, errc::bad_url);
  const client unknown("ucx://no.such.host.invalid:1", {}, ec);
  EXPECT_EQ(ec, errc::host_not_found);
  try {
    const client refused("ucx://127.0.0.1:9");
    FAIL();
  } catch (const error& failed) {
    EXPECT_EQ(failed.code(), errc::connection_refused);
    EXPECT_NE(std::string(failed.what()).find("ucx://127.0.0.1:9"), std::string::npos);
  }
}

}  // namespace
}  // namespace ucx::test
