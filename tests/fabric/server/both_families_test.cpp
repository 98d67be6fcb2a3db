// A server by plain UCX that clients reach by IPv4 and by IPv6: either kind is served alike.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <future>
#include <mutex>
#include <optional>
#include <span>
#include <sstream>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/basics/changed_variable.hpp"
#include "support/basics/mentions.hpp"
#include "support/basics/soon.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/streams/stream_script.hpp"
#include "support/transports/ipv6.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/access_rules.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/fstream.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/pipe_broker.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/remote_descriptor.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/server.hpp"
#include "ucx/url.hpp"
#include "ucx/version.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using std::ios;

constexpr const char* both_loopbacks = "127.0.0.1:0,[::1]:0";

/// Returns the options of a context that speaks the family of the address. Nothing is mapped, where
/// `shares` says so: the server is asked.
context_options speaking(const socket_address& to, bool shares) {
  context_options made{.share_memory = shares};
  if (to.is_v6()) made.configuration = {{"TCP_AF_PRIO", "inet6"}};
  return made;
}

client client_at(const socket_address& to, bool shares = false, std::error_code& ec = throws) {
  return client(url(to.host(), to.port()), {.context = speaking(to, shares)}, ec);
}

/// Returns what making such a server says; nothing where it is made.
std::string complaint_about(const server_options& options, std::error_code& code) try {
  const server made(options);
  code.clear();
  return {};
} catch (const error& refused) {
  code = refused.code();
  return refused.what();
}

/// Has threads end before they are joined, also where a test ends early.
class end_of_threads {
 public:
  explicit end_of_threads(std::atomic<bool>& over) : over_(over) {}
  end_of_threads(const end_of_threads&) = delete;
  end_of_threads& operator=(const end_of_threads&) = delete;
  ~end_of_threads() { over_ = true; }

 private:
  std::atomic<bool>& over_;
};

class ServerOfBothFamilies : public testing::Test {
 protected:
  static server_options options() { return by_ucx({.bind = both_loopbacks}); }

  void SetUp() override {
    if (!has_ipv6()) GTEST_SKIP() << "this machine has no ::1";
    std::error_code ec;
    const std::string why = complaint_about(options(), ec);
    if (ec == errc::not_supported) {
      const std::string ucx = "UCX " + to_string(ucx_version());
      ASSERT_TRUE(mentions(why, "[::1]:0: " + ucx + " speaks no IPv6 there")) << why;
      GTEST_SKIP() << ucx << " has no IPv6 on the loopback";
    }
    ASSERT_FALSE(ec) << why;
    server_.emplace(options());
  }

  /// Returns the addresses of the server, by both families.
  static std::vector<socket_address> addresses_of(const server& some) {
    const std::uint16_t port = some.address().socket.port();
    return {socket_address("127.0.0.1", port), socket_address("::1", port)};
  }
  std::vector<socket_address> addresses() const { return addresses_of(*server_); }
  std::deque<client> connect_by_both(bool shares = false) const {
    std::deque<client> all;
    for (const socket_address& each : addresses()) all.push_back(client_at(each, shares));
    return all;
  }

  std::vector<std::byte> memory_ = pattern(3'000'000);
  const temporary_directory directory_;
  std::optional<server> server_;
};

TEST_F(ServerOfBothFamilies, HasOnePortForBoth) {
  EXPECT_EQ(server_->address().socket.host(), "127.0.0.1");
  EXPECT_NE(server_->address().socket.port(), 0);
  EXPECT_TRUE(server_->url().starts_with("ucx://127.0.0.1:")) << server_->url();
  EXPECT_EQ(server_->workers(), 2U);
  const std::deque<client> clients = connect_by_both();
  EXPECT_EQ(server_->statistics().clients, clients.size());
  EXPECT_EQ(server_->worker(0).connections(), 1U);
  EXPECT_EQ(server_->worker(1).connections(), 1U) << "it is for clients of IPv6";
  client by_worker_address(server_->address().worker);
  EXPECT_TRUE(by_worker_address.list().empty());
}

TEST_F(ServerOfBothFamilies, ServesMemoryByMessage) {
  const publication p = server_->publish("m", std::span(memory_), access::read_write);
  for (client& each : connect_by_both()) {
    remote_region region = each.open("m", access::read_write);
    EXPECT_EQ(region.transfer_method(), transfer_method::message);
    std::vector<std::byte> into(memory_.size());
    region.read_at(0, into);
    EXPECT_TRUE(holds_pattern(into));
    region.write_at(5, std::span(into).first(1000));
    region.flush();
    EXPECT_TRUE(std::equal(into.begin(), into.begin() + 1000, memory_.begin() + 5));
    region.write_at(5, std::span(into).subspan(5, 1000));
    region.flush();
  }
  EXPECT_TRUE(holds_pattern(memory_));
  EXPECT_EQ(server_->statistics().opens, 2U);
}

TEST_F(ServerOfBothFamilies, ServesMemoryInPlace) {
  const publication made = server_->allocate("made", 100'000, access::read_write);
  for (client& each : connect_by_both(true)) {
    remote_region region = each.open("made", access::read_write);
    EXPECT_EQ(region.transfer_method(), transfer_method::mapped)
        << region.why_not(transfer_method::mapped);
    const std::vector<std::byte> said = pattern(100'000);
    std::fill(made.bytes().begin(), made.bytes().end(), std::byte{});
    region.write_at(0, said);
    region.flush();
    EXPECT_TRUE(holds_pattern(made.bytes()));
  }
}

TEST_F(ServerOfBothFamilies, TellsClientsOfIpv6NoKey) {
  const publication p = server_->publish("m", std::span(memory_), access::read);
  client by_six = client_at(addresses().back());
  std::error_code ec;
  {
    const changed_variable forced("UCXIO_TRANSFER_METHOD", "rma");
    by_six.open("m", access::read, {}, ec);
  }
  EXPECT_EQ(ec, errc::not_supported);
  const remote_region region = by_six.open("m");
  const std::string why = region.why_not(transfer_method::rma);
  EXPECT_TRUE(mentions(why, "another context")) << why;
  client by_four = client_at(addresses().front());
  const std::string other = by_four.open("m").why_not(transfer_method::rma);
  EXPECT_FALSE(mentions(other, "another context")) << other;
}

// The program may expose memory by itself, on the context of any worker.
TEST_F(ServerOfBothFamilies, ServesTheRegionsOfEachContext) {
  std::deque<client> clients = connect_by_both();
  for (std::size_t i = 0; i < server_->workers(); ++i) {
    const memory_region own(server_->worker(i).parent(), std::span(memory_), access::read);
    remote_descriptor told = own.descriptor();
    told.remote_key.clear();
    for (std::size_t by = 0; by < clients.size(); ++by) {
      remote_region region(clients[by].connection(), told);
      EXPECT_EQ(region.transfer_method(), transfer_method::message);
      std::vector<std::byte> into(memory_.size());
      std::error_code ec;
      region.read_at(0, into, {}, ec);
      // Workers of IPv4 have the first context alone.
      const bool is_served = by >= i;
      EXPECT_EQ(ec, is_served ? std::error_code() : make_error_code(errc::stale_region)) << i << by;
      EXPECT_EQ(holds_pattern(into), is_served) << i << by;
    }
  }
}

TEST_F(ServerOfBothFamilies, ListsNamesAndServesFiles) {
  const std::string text = sample_text(3'000'000, 7);
  const publication file = server_->publish_file("a file", directory_.make("file", text));
  const publication memory = server_->publish("m", std::span(memory_), access::read);
  for (client& each : connect_by_both()) {
    EXPECT_EQ(each.list().size(), 2U);
    EXPECT_EQ(each.stat("a file").size, text.size());
    ifstream in(each, "a file", ios::binary);
    std::ostringstream got;
    got << in.rdbuf();
    EXPECT_TRUE(got.str() == text) << in.error_message();
    std::error_code ec;
    each.open("none", access::read, {}, ec);
    EXPECT_EQ(ec, errc::no_such_name);
  }
}

TEST_F(ServerOfBothFamilies, HasOneWriterOfAFileAmongBoth) {
  std::filesystem::create_directory(directory_ / "store");
  const publication p = server_->publish_store(directory_ / "store", {.writable = true});
  std::deque<client> clients = connect_by_both();
  const std::string text = sample_text(2'000'000, 8);
  for (std::size_t i = 0; i < clients.size(); ++i) {
    const std::string name = "f" + std::to_string(i);
    ofstream out(clients[i], name, ios::binary);
    out << text;
    EXPECT_EQ(ofstream(clients[1 - i], name).error(), errc::busy);
    out.close();
    ASSERT_TRUE(out.good()) << out.error_message();
    EXPECT_TRUE(content_of(directory_ / "store" / name) == text);
    ifstream in(clients[1 - i], name, ios::binary);
    std::ostringstream got;
    got << in.rdbuf();
    EXPECT_TRUE(got.str() == text) << in.error_message();
  }
}

TEST_F(ServerOfBothFamilies, ServesBothAtOnce) {
  constexpr std::size_t of_each = 3;
  constexpr std::size_t part = 200'000;
  std::vector<std::byte> shared(2 * of_each * part);
  const publication p = server_->publish("m", std::span(shared), access::read_write);
  std::vector<std::jthread> users;
  std::size_t number = 0;
  for (std::size_t i = 0; i < of_each; ++i) {
    for (const socket_address& at : addresses()) {
      users.emplace_back([&, at, offset = part * number++] {
        client own = client_at(at);
        remote_region region = own.open("m", access::read_write);
        std::vector<std::byte> said = pattern(part);
        std::vector<std::byte> into(part);
        for (int round = 0; round < 10; ++round) {
          std::error_code ec;
          said[0] = static_cast<std::byte>(round);
          region.write_at(offset, said, {}, ec);
          if (!ec) region.flush({}, ec);
          if (!ec) region.read_at(offset, into, {}, ec);
          ASSERT_FALSE(ec) << ec.message();
          ASSERT_EQ(into, said) << round;
        }
      });
    }
  }
  users.clear();
  EXPECT_EQ(server_->statistics().clients_served, 2 * of_each);
}

TEST_F(ServerOfBothFamilies, CountsTheClientsOfBoth) {
  server_options few = options();
  few.max_clients = 2;
  const server small(few);
  for (const socket_address& full : addresses_of(small)) {
    std::deque<client> clients;
    for (const socket_address& each : addresses_of(small)) {
      EXPECT_TRUE(soon([&] {
        std::error_code ec;
        client made = client_at(each, false, ec);
        if (!ec) clients.push_back(std::move(made));
        return !ec;
      })) << "the last round's have left";
    }
    std::error_code ec;
    const client refused = client_at(full, false, ec);
    EXPECT_EQ(ec, errc::busy) << full;
  }
}

TEST_F(ServerOfBothFamilies, HasTheSameRulesForBoth) {
  const publication p = server_->publish("m", std::span(memory_), access::read_write);
  std::deque<client> clients = connect_by_both();
  std::vector<remote_region> regions;
  for (client& each : clients) regions.push_back(each.open("m", access::read_write));
  server_->set_rules(access_rules().allow("anybody", access_right::list | access_right::read, "m"));
  for (std::size_t i = 0; i < regions.size(); ++i) {
    std::error_code ec;
    EXPECT_TRUE(soon([&] {
      ec.clear();
      regions[i].write_at(0, std::span(memory_).first(1), {}, ec);
      if (!ec) regions[i].flush({}, ec);
      return bool(ec);
    }));
    clients[i].open("m", access::read_write, {}, ec);
    EXPECT_EQ(ec, errc::permission_denied) << i;
    EXPECT_NO_THROW(clients[i].open("m", access::read)) << i;
  }
}

TEST_F(ServerOfBothFamilies, RevokesAWithdrawnNameForBoth) {
  publication p = server_->publish("m", std::span(memory_), access::read_write);
  std::deque<client> clients = connect_by_both();
  std::vector<remote_region> regions;
  for (client& each : clients) regions.push_back(each.open("m", access::read_write));
  p.close();
  std::fill(memory_.begin(), memory_.end(), std::byte{0xDD});
  for (std::size_t i = 0; i < regions.size(); ++i) {
    EXPECT_TRUE(soon([&] {
      clients[i].worker().progress();
      return regions[i].status() == errc::revoked;
    })) << i;
    std::vector<std::byte> into(10);
    std::error_code ec;
    regions[i].read_at(0, into, {}, ec);
    EXPECT_EQ(ec, errc::revoked) << i;
  }
}

// The publication may not return while a worker still reads the memory, of whichever context.
TEST_F(ServerOfBothFamilies, WaitsForReadersOfBothToWithdrawAName) {
  const std::vector<socket_address> all = addresses();
  std::atomic<bool> over{false};
  std::deque<std::atomic<int>> began(all.size());
  const publication kept = server_->publish("kept", std::span(memory_), access::read);
  std::vector<std::jthread> readers;
  const end_of_threads end(over);
  for (std::size_t i = 0; i < all.size(); ++i) {
    readers.emplace_back([&, i] {
      client own = client_at(all[i]);
      std::vector<std::byte> into(1'000'000);
      while (!over) {
        std::error_code ec;
        remote_region passing = own.open("passing", access::read, {}, ec);
        if (!ec) passing.read_at(0, into, {}, ec);
        if (!ec && !holds_pattern(into)) ADD_FAILURE() << "memory was read behind its withdrawal";
        if (!ec) ++began[i];
        const bool is_known = !ec || ec == errc::no_such_name || ec == errc::revoked;
        ASSERT_TRUE(is_known) << ec.message();
      }
    });
  }
  for (int round = 0; round < 20; ++round) {
    std::vector<std::byte> passing = pattern(1'000'000);
    publication p = server_->publish("passing", std::span(passing), access::read);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const int before = began[i];
      ASSERT_TRUE(soon([&] { return began[i] > before; })) << all[i];
    }
    p.close();
    std::fill(passing.begin(), passing.end(), std::byte{0xDD});
  }
}

TEST_F(ServerOfBothFamilies, LeavesTheClientsOfBoth) {
  std::deque<client> clients = connect_by_both();
  const std::vector<socket_address> were = addresses();
  server_->close();
  for (client& each : clients) {
    EXPECT_TRUE(soon([&] {
      each.worker().progress();
      return each.status() == errc::connection_reset;
    })) << each.status();
  }
  for (const socket_address& each : were) {
    std::error_code ec;
    const client late = client_at(each, false, ec);
    EXPECT_TRUE(ec) << each;
  }
}

TEST_F(ServerOfBothFamilies, MayGoBeforeAndBehindAllThatIsMadeOfIt) {
  std::optional<publication> p = server_->publish("m", std::span(memory_), access::read);
  std::deque<client> clients = connect_by_both();
  std::vector<remote_region> regions;
  for (client& each : clients) regions.push_back(each.open("m"));
  server_.reset();
  std::vector<std::byte> into(10);
  for (remote_region& each : regions) {
    std::error_code ec;
    each.read_at(0, into, {}, ec);
    EXPECT_TRUE(ec);
  }
  p.reset();
  server_.emplace(options());
  p = server_->publish("m", std::span(memory_), access::read);
  regions.clear();
  clients = connect_by_both();
  for (client& each : clients) regions.push_back(each.open("m"));
  p.reset();
  regions.clear();
  clients.clear();
  server_.reset();
}

TEST_F(ServerOfBothFamilies, MayHaveWorkersAndBeDrivenByTheProgram) {
  server_options several = options();
  several.workers = 2;
  several.worker.progress = progress_mode::caller;
  server driven(several);
  const publication p = driven.publish("m", std::span(memory_), access::read);
  std::atomic<bool> over{false};
  const std::jthread driver([&] {
    while (!over) driven.worker().progress();
  });
  const end_of_threads end(over);
  for (int round = 0; round < 3; ++round) {
    for (const socket_address& each : addresses_of(driven)) {
      std::error_code ec;
      client own = client_at(each, false, ec);
      std::vector<std::byte> into(1000);
      if (!ec) own.open("m", access::read, {}, ec).read_at(0, into, {}, ec);
      EXPECT_FALSE(ec) << each << ec.message();
      EXPECT_TRUE(holds_pattern(into));
    }
  }
  EXPECT_EQ(driven.workers(), 3U);
}

TEST_F(ServerOfBothFamilies, IntroducesTheEndsOfPipesOfEitherFamily) {
  const pipe_broker broker(*server_);
  for (const socket_address& each : addresses()) {
    const changed_variable family("UCX_TCP_AF_PRIO", each.is_v6() ? "inet6" : "inet");
    const std::string name = to_string(url(each.host(), each.port(), "p"));
    auto reading = std::async(std::launch::async, [&] {
      ipipestream in(name);
      std::string line;
      std::getline(in, line);
      return line;
    });
    opipestream out(name);
    out << "said\n";
    out.close();
    EXPECT_EQ(reading.get(), "said") << out.error_message();
  }
}

// Over UCX an end of one family can not connect to one of the other.
TEST_F(ServerOfBothFamilies, IntroducesNoEndsOfDifferentFamilies) {
  const auto name = [](const socket_address& at) {
    return to_string(url(at.host(), at.port(), "p"));
  };
  for (const bool reads_by_six : {true, false}) {
    const pipe_broker broker(*server_);
    std::vector<socket_address> all = addresses();
    if (reads_by_six) std::swap(all.front(), all.back());
    const socket_address& own = all.front();
    const socket_address& other = all.back();
    auto reading = std::async(std::launch::async, [&] {
      ipipestream in(name(own), {.context = speaking(own, false)});
      std::string line;
      std::getline(in, line);
      return in ? line : in.error_message();
    });
    ASSERT_TRUE(soon([&] { return broker.waiting() == 1; }));
    std::stop_source stop;
    auto writing = std::async(std::launch::async, [&] {
      return opipestream(name(other), {.stop = stop.get_token(), .context = speaking(other, false)})
          .error();
    });
    EXPECT_TRUE(soon([&] { return broker.waiting() == 2; })) << own;
    EXPECT_EQ(broker.introduced(), 0U) << own;
    opipestream out(name(own), {.context = speaking(own, false)});
    out << "said\n";
    out.close();
    EXPECT_EQ(reading.get(), "said") << out.error_message();
    stop.request_stop();
    EXPECT_EQ(writing.get(), errc::canceled);
    EXPECT_EQ(broker.introduced(), 1U);
  }
}

/// A client whose connection asks the broker for writers, and never listens.
class asker {
 public:
  explicit asker(const socket_address& at) : through_(client_at(at)) {}
  void ask_for(char name) {
    std::string question("UXPQ\1\0\0\0\1\0\0\0\1\0\0\0\1\0", 18);
    question += name;
    question += std::string("\013\000", 2) + "127.0.0.1:1";
    through_.connection().send(active_message{0x7563'7869'706d'6500},
                               std::as_bytes(std::span(question)));
  }

 private:
  client through_;
};

// The connections of each worker have numbers from 1.
TEST_F(ServerOfBothFamilies, CountsTheEndsOfPipesOfEachConnection) {
  const pipe_broker broker(*server_);
  std::deque<asker> all;
  for (const socket_address& each : addresses()) {
    const std::size_t before = broker.waiting();
    asker& one = all.emplace_back(each);
    for (const char name : std::string("abcd")) one.ask_for(name);
    EXPECT_TRUE(soon([&] { return broker.waiting() == before + 4; })) << each;
  }
}

TEST_F(ServerOfBothFamilies, IsAtTheWildcardOfIpv6) {
  std::mutex mutex;
  std::vector<std::string> lines;
  server_options everywhere = options();
  everywhere.bind = "[::]:0";
  everywhere.insecure = true;
  everywhere.context.log = {.level = log_level::info,
                            .sink = [&](log_level, std::string_view line) {
                              const std::lock_guard guard(mutex);
                              lines.emplace_back(line);
                            }};
  server open(everywhere);
  EXPECT_TRUE(open.address().socket.is_v6());
  EXPECT_TRUE(open.address().socket.is_wildcard());
  const publication p = open.publish("m", std::span(memory_), access::read);
  for (const socket_address& each : addresses_of(open)) {
    client own = client_at(each);
    std::vector<std::byte> into(1000);
    own.open("m").read_at(0, into);
    EXPECT_TRUE(holds_pattern(into)) << each;
    const socket_address at = each.is_v6() ? each : socket_address("0.0.0.0", each.port());
    const std::string wanted = "listening on " + to_string(at);
    const std::lock_guard guard(mutex);
    EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
      return mentions(line, wanted);
    })) << wanted;
  }
}

/// A plain socket that listens at an address, of the system's choice where the port is 0.
class taken_port {
 public:
  explicit taken_port(const socket_address& at)
      : socket_(::socket(at.native()->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int yes = 1;
    ::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    is_taken_ = ::bind(socket_, at.native(), at.native_size()) == 0 && ::listen(socket_, 1) == 0;
    ::sockaddr_storage place = {};
    ::socklen_t size = sizeof place;
    ::getsockname(socket_, reinterpret_cast<::sockaddr*>(&place), &size);
    address_ = socket_address::from_native(reinterpret_cast<const ::sockaddr*>(&place), size);
  }
  taken_port(const taken_port&) = delete;
  taken_port& operator=(const taken_port&) = delete;
  ~taken_port() { ::close(socket_); }
  bool is_taken() const { return is_taken_; }
  const socket_address& address() const { return address_; }

 private:
  const int socket_;
  bool is_taken_ = false;
  socket_address address_;
};

TEST_F(ServerOfBothFamilies, ListensInNeitherWhereAPortIsTakenInOne) {
  for (const char* const first : {"127.0.0.1", "::1"}) {
    const bool is_four = std::string_view(first) == "127.0.0.1";
    // Another process may have the port in the other family.
    std::optional<taken_port> taken;
    bool other_is_free = false;
    for (int i = 0; i < 20 && !other_is_free; ++i) {
      taken.emplace(socket_address(first, 0));
      const taken_port other(
          socket_address(is_four ? "::1" : "127.0.0.1", taken->address().port()));
      other_is_free = other.is_taken();
    }
    ASSERT_TRUE(other_is_free);
    const std::uint16_t number = taken->address().port();
    const std::string port = ':' + std::to_string(number);
    server_options wanted = options();
    wanted.bind = "127.0.0.1" + port + ",[::1]" + port;
    std::error_code ec;
    const std::string why = complaint_about(wanted, ec);
    EXPECT_EQ(ec, errc::address_in_use) << why;
    EXPECT_TRUE(mentions(why, "listening on " + to_string(taken->address()))) << why;
    EXPECT_TRUE(taken_port(socket_address(is_four ? "::1" : "127.0.0.1", number)).is_taken())
        << "nothing is left half open";
    taken.reset();
    // Another process may have it for a moment.
    EXPECT_TRUE(soon([&] {
      const server made(wanted, ec);
      return !ec && made.address().socket.port() == number;
    })) << ec.message();
  }
}

TEST(ServerOfTwoAddresses, IsRefusedWhereTheyDoNotGoTogether) {
  struct refusal {
    const char* bind;
    errc code;
    const char* words;
  };
  for (const refusal& each : {
           refusal{"127.0.0.1:1,127.0.0.2:1", errc::bad_address, "one is of IPv4"},
           refusal{"[::1]:1,[::1]:1", errc::bad_address, "one is of IPv4"},
           refusal{"127.0.0.1:7471,[::1]:7472", errc::bad_address, "they have one port"},
           refusal{"127.0.0.1:1,unix:/a.sock", errc::bad_address, "one is of IPv4"},
           refusal{"127.0.0.1:1,", errc::bad_address, "one is of IPv4"},
           refusal{"127.0.0.1:1,[::1]:1,[::1]:1", errc::bad_address, "which is not host:port"},
           refusal{"127.0.0.1:0,[::]:0", errc::not_secure, "127.0.0.1:0 and [::]:0"},
           refusal{"0.0.0.0:0,[::1]:0", errc::not_secure, "0.0.0.0:0 and [::1]:0"},
           refusal{"[::]:0", errc::not_secure, "serving on [::]:0: "},
       }) {
    std::error_code ec;
    const std::string why = complaint_about(by_ucx({.bind = each.bind}), ec);
    EXPECT_EQ(ec, each.code) << each.bind << ": " << why;
    EXPECT_TRUE(mentions(why, each.words)) << why;
  }
}

TEST(ServerOfTwoAddresses, NeedsAnAddressOfThisMachine) {
  if (!has_ipv6()) GTEST_SKIP() << "this machine has no ::1";
  std::error_code ec;
  const std::string why =
      complaint_about(by_ucx({.bind = "127.0.0.1:0,[2001:db8::7]:0", .insecure = true}), ec);
  EXPECT_EQ(ec, errc::bad_address) << why;
  EXPECT_TRUE(mentions(why, "[2001:db8::7]:0: no interface of this machine has the address"))
      << why;
}

TEST(ServerOfTwoAddresses, IsByPlainUcxWithNothingSaidOfOneFamily) {
  std::vector<std::pair<server_options, const char*>> all;
  const server_options plain = by_ucx({.bind = both_loopbacks});
  all.emplace_back(server_options{.bind = both_loopbacks}, "two addresses are for plain UCX");
  all.emplace_back(server_options{.bind = both_loopbacks, .context = {.transports = {"socket"}}},
                   "two addresses are for plain UCX");
  all.emplace_back(plain, "TCP_AF_PRIO names the family");
  all.back().first.context.configuration = {{"TCP_AF_PRIO", "inet6"}};
  all.emplace_back(plain, "`require_rdma` is for one family");
  all.back().first.context.require_rdma = true;
  all.emplace_back(plain, "UCX_TCP_AF_PRIO names the family");
  all.back().first.context.configuration_precedence = precedence::environment;
  const changed_variable family("UCX_TCP_AF_PRIO", "inet");
  for (const auto& [options, words] : all) {
    std::error_code ec;
    const std::string why = complaint_about(options, ec);
    EXPECT_EQ(ec, errc::bad_configuration) << why;
    EXPECT_TRUE(mentions(why, words)) << why;
  }
}

}  // namespace
}  // namespace ucx::test
