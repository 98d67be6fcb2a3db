// A server with several workers: whoever comes is served alike, by whichever of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <future>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/streams/stream_script.hpp"
#include "support/transports/network.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/fstream.hpp"
#include "ucx/pipe_broker.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using std::ios;

constexpr std::size_t workers = 3;

class ServerWorkers : public testing::Test {
 protected:
  static server_options options() {
    server_options chosen;
    chosen.workers = workers;
    chosen.context.share_memory = false;  // so that the server is asked
    return chosen;
  }
  /// Connects a client for each worker, and one more.
  std::deque<client> connect_to_all() {
    std::deque<client> all;
    for (std::size_t i = 0; i <= workers; ++i) all.emplace_back(server_.url());
    return all;
  }

  std::vector<std::byte> memory_ = pattern(3'000'000);
  const temporary_directory directory_;
  server server_{served_there(options())};
};

TEST_F(ServerWorkers, GetTheClientsInTurn) {
  const std::deque<client> clients = connect_to_all();
  ASSERT_EQ(server_.workers(), workers);
  EXPECT_EQ(server_.worker(0).connections(), 2U);
  EXPECT_EQ(server_.worker(1).connections(), 1U);
  EXPECT_EQ(server_.worker(2).connections(), 1U);
  EXPECT_EQ(server_.statistics().clients, workers + 1);
  std::deque<client> by_address;
  for (std::size_t i = 0; i < workers; ++i) by_address.emplace_back(server_.address().worker);
  EXPECT_EQ(server_.worker(0).connections(), 2U + workers) << "who needs no listener stays there";
}

TEST_F(ServerWorkers, AreAFewAtLeastAndAtMost) {
  for (const std::size_t number : {std::size_t{0}, server_options::max_workers + 1}) {
    std::error_code ec;
    const ucx_server refused({.workers = number}, ec);
    EXPECT_EQ(ec, errc::invalid_argument) << number;
  }
  EXPECT_THROW(ucx_server({.workers = 0}), error);
  const ucx_server one;
  EXPECT_EQ(one.workers(), 1U);
}

TEST_F(ServerWorkers, ServeMemory) {
  const publication p = server_.publish("m", std::span(memory_), access::read_write);
  for (client& each : connect_to_all()) {
    remote_region region = each.open("m", access::read_write);
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
  EXPECT_EQ(server_.statistics().opens, workers + 1);
}

TEST_F(ServerWorkers, ServeFiles) {
  const std::string text = sample_text(3'000'000, 7);
  const publication p = server_.publish_file("a file", directory_.make("file", text));
  for (client& each : connect_to_all()) {
    EXPECT_EQ(each.stat("a file").size, text.size());
    EXPECT_EQ(each.list().size(), 1U);
    ifstream in(each, "a file", ios::binary);
    std::ostringstream got;
    got << in.rdbuf();
    EXPECT_TRUE(got.str() == text) << in.error_message();
    std::error_code ec;
    each.open("none", access::read, {}, ec);
    EXPECT_EQ(ec, errc::no_such_name);
  }
}

TEST_F(ServerWorkers, WriteStores) {
  std::filesystem::create_directory(directory_ / "store");
  const publication p =
      server_.publish_store(directory_ / "store", {.writable = true, .write_window = 1 << 20});
  const std::string text = sample_text(5'000'000, 8);
  int number = 0;
  for (client& each : connect_to_all()) {
    const std::string name = "of " + std::to_string(number++);
    ofstream out(each, name, ios::binary);
    out << text;
    out.close();
    ASSERT_TRUE(out.good()) << out.error_message();
    EXPECT_TRUE(content_of(directory_ / "store" / name) == text);
    ofstream more(each, name, ios::binary | ios::app);
    more << "more" << std::flush;
    EXPECT_EQ(std::filesystem::file_size(directory_ / "store" / name), text.size() + 4);
    std::error_code ec;
    each.create(name, {.mode = creation::append}, {}, ec);
    EXPECT_EQ(ec, errc::busy) << "it is being written, by whichever worker";
    more.close();
    ifstream in(each, name, ios::binary);
    std::ostringstream got;
    got << in.rdbuf();
    EXPECT_TRUE(got.str() == text + "more") << in.error_message();
    each.remove(name);
    EXPECT_FALSE(std::filesystem::exists(directory_ / "store" / name));
  }
}

TEST_F(ServerWorkers, HaveOneWriterOfAFileAmongThem) {
  std::filesystem::create_directory(directory_ / "store");
  const publication p = server_.publish_store(directory_ / "store", {.writable = true});
  std::deque<client> clients = connect_to_all();
  ofstream first(clients[0], "f");
  ASSERT_TRUE(first.is_open());
  for (std::size_t i = 1; i < clients.size(); ++i) {
    EXPECT_EQ(ofstream(clients[i], "f").error(), errc::busy) << i;
  }
  first.close();
  EXPECT_TRUE(ofstream(clients[1], "f").is_open());
}

TEST_F(ServerWorkers, ForgetTheFilesOfAClientThatIsGone) {
  std::filesystem::create_directory(directory_ / "store");
  const publication p = server_.publish_store(directory_ / "store", {.writable = true});
  for (std::size_t i = 0; i <= workers; ++i) {
    std::optional<client> leaving(std::in_place, server_.url());
    remote_region file = leaving->create("f");
    leaving->worker().progress();
    leaving->close();
    EXPECT_TRUE(soon([&] {
      std::error_code ec;
      client other(server_.url());
      other.create("f", {}, {}, ec);
      return !ec;
    })) << i;
  }
}

TEST_F(ServerWorkers, RevokeAWithdrawnNameForAll) {
  publication p = server_.publish("m", std::span(memory_), access::read_write);
  std::deque<client> clients = connect_to_all();
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

TEST_F(ServerWorkers, LeaveTheClientsOfAll) {
  std::deque<client> clients = connect_to_all();
  server_.close();
  for (client& each : clients) {
    EXPECT_TRUE(soon([&] {
      each.worker().progress();
      return each.status() == errc::connection_reset;
    })) << each.status();
  }
}

TEST_F(ServerWorkers, CountTheClientsOfAll) {
  server_options few = options();
  few.max_clients = 2;
  const ucx_server small(few);
  std::deque<client> clients;
  clients.emplace_back(small.url());
  clients.emplace_back(small.url());
  std::error_code ec;
  const client refused(small.url(), {}, ec);
  EXPECT_EQ(ec, errc::busy);
  clients.pop_front();
  EXPECT_TRUE(soon([&] {
    const client late(small.url(), {}, ec);
    return !ec;
  }));
  EXPECT_TRUE(soon([&] { return small.statistics().clients == 1; }));
}

TEST_F(ServerWorkers, ServeWhileNamesComeAndGo) {
  std::vector<std::jthread> readers;
  std::atomic<std::size_t> read{0};
  const publication kept = server_.publish("kept", std::span(memory_), access::read);
  for (std::size_t i = 0; i < 2 * workers; ++i) {
    readers.emplace_back([&, url = server_.url()] {
      client own(url);
      std::vector<std::byte> into(300'000);
      for (int round = 0; round < 20; ++round) {
        own.open("kept").read_at(0, into);
        EXPECT_TRUE(holds_pattern(into));
        std::error_code ec;
        remote_region passing = own.open("passing", access::read, {}, ec);
        if (!ec) passing.read_at(0, into, {}, ec);
        EXPECT_TRUE(!ec || ec == errc::no_such_name || ec == errc::revoked) << ec;
        ++read;
      }
    });
  }
  std::vector<std::byte> passing = pattern(1'000'000);
  while (read < 2 * workers * 20) {
    publication p = server_.publish("passing", std::span(passing), access::read);
    std::this_thread::sleep_for(2ms);
    p.close();
  }
  readers.clear();
  EXPECT_EQ(server_.statistics().clients_served, 2 * workers);
}

TEST_F(ServerWorkers, IntroduceTheEndsOfPipes) {
  const pipe_broker broker(server_);
  const std::string name = server_.url("p");
  for (std::size_t i = 0; i <= workers; ++i) {
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

// Each of them by itself would be waited for several seconds.
TEST(ServerOfBusyWorkers, WaitsForThemTogether) {
  constexpr std::size_t many = 5;
  server_options chosen;
  chosen.workers = many;
  chosen.worker.close_timeout = 4s;
  std::promise<void> rest;
  const std::shared_future<void> over = rest.get_future().share();
  ucx_server served(chosen);
  for (std::size_t i = 1; i < many; ++i) served.worker(i).post([over] { over.wait(); });
  const auto begin = std::chrono::steady_clock::now();
  served.close();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, (many - 1) * chosen.worker.close_timeout);
  rest.set_value();
}

}  // namespace
}  // namespace ucx::test
