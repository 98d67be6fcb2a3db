// A server by TLS whose other peers flood it, stop, or never come to a word: one that behaves gets
// all that it asks for.
#include <netinet/in.h>
#include <sys/socket.h>
#include <ucp/api/ucp.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/owned_descriptor.hpp"
#include "carrier/carrier_endpoint.hpp"
#include "carrier/carrier_listener.hpp"
#include "carrier/carrier_worker.hpp"
#include "carrier/segment.hpp"
#include "support/basics/effort.hpp"
#include "support/basics/soon.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/publication.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/server.hpp"
#include "ucx/token_file.hpp"
#include "ucx/url.hpp"
#include "unit/carrier/bare_peer.hpp"

namespace ucx::test {
namespace {

using detail::owned_descriptor;
using testing::HasSubstr;

constexpr std::size_t read_size = std::size_t{64} << 10U;

class CrowdedServer : public testing::TestWithParam<std::size_t> {
 protected:
  CrowdedServer() {
    token_file servers(folder_ / "servers");
    for (const char* each : {"good", "bad"}) {
      token_file(folder_ / each).add("127.0.0.1", servers.create(each));
    }
    context_options chosen{.transports = {"tls"}, .share_memory = false};
    chosen.token_file = folder_ / "servers";
    server_options options{.context = chosen, .workers = GetParam()};
    options.limits.per_identity.connections = 8;
    serving_.emplace(options);
    shown_ = serving_->publish("shown", std::span(memory_), access::read_write);
  }

  client connect(const std::string& token, progress_mode progress = progress_mode::automatic) {
    client_options options;
    options.context.share_memory = false;
    options.context.token_file = folder_ / token;
    options.worker.progress = progress;
    return client(url(serving_->url()), options);
  }

  /// Asks without end for as much as it may, and takes the answers.
  void flood(const std::stop_token& stop) {
    client by = connect("bad");
    remote_region region = by.open("shown");
    std::vector<std::byte> into(8);
    std::deque<request> asked;
    while (!stop.stop_requested()) {
      while (asked.size() < 512) asked.push_back(region.start_read_at(0, into));
      std::error_code ec;
      asked.front().wait(ec);
      asked.pop_front();
      if (ec) return;
      ++floods_;
    }
  }

  /// One that opens a handshake, and never ends it.
  static owned_descriptor stranger(std::uint16_t port) {
    owned_descriptor made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ::sockaddr_in there = {};
    there.sin_family = AF_INET;
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    there.sin_port = htons(port);
    EXPECT_EQ(::connect(made.get(), reinterpret_cast<const ::sockaddr*>(&there), sizeof there), 0);
    EXPECT_EQ(::send(made.get(), "\x16\3\1\2", 4, MSG_NOSIGNAL), 4);
    return made;
  }

  const temporary_directory folder_;
  std::vector<std::byte> memory_ = pattern(std::size_t{4} << 20U);
  std::optional<server> serving_;
  publication shown_;
  std::atomic<std::uint64_t> floods_{0};
};

TEST_P(CrowdedServer, ServesOneThatBehaves) {
  client good = connect("good");
  remote_region region = good.open("shown");
  // One that does not take what it asked for: nobody drives it.
  client stopped = connect("bad", progress_mode::caller);
  remote_region untaken = stopped.open("shown");
  std::vector<std::byte> never(memory_.size());
  std::vector<request> left;
  for (int i = 0; i < 100; ++i) left.push_back(untaken.start_read_at(0, never));
  std::jthread flooding([this](const std::stop_token& stop) { flood(stop); });
  ASSERT_TRUE(soon([this] { return floods_ > 0; }));
  std::vector<owned_descriptor> strangers;
  const std::uint16_t port = url(serving_->url()).port();
  for (std::size_t i = 0; i < detail::carrier_listener::most_guests; ++i) {
    strangers.push_back(stranger(port));
  }
  std::vector<std::byte> into(read_size);
  const std::uint64_t before = floods_;
  for (std::size_t i = 0; i < effort<std::size_t>(200, 50); ++i) {
    const std::uint64_t at = i * read_size % memory_.size();
    region.read_at(at, into);
    ASSERT_TRUE(holds_pattern(into, 0, at));
    ASSERT_EQ(good.list().size(), 1U);
  }
  EXPECT_TRUE(soon([&] { return floods_ > before; })) << "it is served, too";
  EXPECT_EQ(connect("good").list().size(), 1U) << "others come in";
  EXPECT_EQ(good.status(), std::error_code());
}

TEST_P(CrowdedServer, RefusesOneThatOpensWithoutEnd) {
  std::deque<client> many;
  const auto open_another = [&] {
    try {
      many.push_back(connect("bad"));
    } catch (const error& refused) {
      EXPECT_EQ(refused.code(), errc::busy);
      EXPECT_THAT(refused.what(), HasSubstr("token \"bad\" has as many connections as it may"));
      return false;
    }
    return true;
  };
  while (many.size() < 20 && open_another()) {
  }
  EXPECT_EQ(many.size(), 8U);
  EXPECT_EQ(connect("good").list().size(), 1U);
  for (client& each : many) EXPECT_EQ(each.list().size(), 1U);
  many.pop_back();
  EXPECT_TRUE(soon([&] { return open_another(); })) << "one has left";
}

/// A worker with bare peers, whose messages are counted.
class CrowdedWorker : public testing::Test {
 protected:
  static constexpr unsigned spoken_id = 255;
  static constexpr std::size_t message_size = detail::segment_head::size + 8;
  struct peer {
    owned_descriptor end;
    detail::carrier_endpoint* endpoint = nullptr;
    std::size_t heard = 0;
  };

  void SetUp() override {
    ASSERT_EQ(worker_.open(), UCS_OK);
    ucp_am_handler_param_t handler = {};
    handler.id = spoken_id;
    handler.cb = [](void* self, const void*, std::size_t, void*, std::size_t,
                    const ucp_am_recv_param_t* params) {
      for (peer& each : static_cast<CrowdedWorker*>(self)->peers_) {
        if (reinterpret_cast<ucp_ep_h>(each.endpoint) == params->reply_ep) ++each.heard;
      }
      return UCS_OK;
    };
    handler.arg = this;
    worker_.set_handler(handler);
    for (peer& each : peers_) {
      each.end = accept_bare_peer(worker_, ucp_ep_params_t{}, AF_INET, each.endpoint);
      ASSERT_NE(each.endpoint, nullptr);
    }
    for (int rounds = 0; rounds < 8; ++rounds) worker_.progress();
  }
  static void say(const peer& by, std::size_t messages) {
    const auto head = detail::segment_head{8, 0, spoken_id}.encode();
    std::vector<std::byte> all;
    for (std::size_t i = 0; i < messages; ++i) {
      all.insert(all.end(), head.begin(), head.end());
      all.resize(all.size() + 8);
    }
    ASSERT_EQ(::send(by.end.get(), all.data(), all.size(), MSG_NOSIGNAL),
              static_cast<::ssize_t>(all.size()));
  }

  detail::carrier_worker worker_{"test", nullptr};
  std::array<peer, 2> peers_;
};

TEST_F(CrowdedWorker, HearsMuchInARoundOfOneThatIsAlone) {
  say(peers_[0], 1000);
  worker_.progress();
  EXPECT_EQ(peers_[0].heard, 1000U);
}

TEST_F(CrowdedWorker, HearsLittleInARoundOfOneThatHasCompany) {
  say(peers_[1], 1);
  worker_.progress();
  EXPECT_EQ(peers_[1].heard, 1U);
  say(peers_[0], 1000);
  std::size_t before = 0;
  for (std::size_t rounds = 0; peers_[0].heard < 1000; ++rounds) {
    ASSERT_LT(rounds, 1000U);
    worker_.progress();
    EXPECT_LE(peers_[0].heard - before, 128 / message_size + 1);
    before = peers_[0].heard;
    if (rounds < 10) {
      say(peers_[1], 1);
      worker_.progress();
      EXPECT_EQ(peers_[1].heard, rounds + 2) << "it has its turn";
      before = peers_[0].heard;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, CrowdedServer, testing::Values(1, 3));

}  // namespace
}  // namespace ucx::test
