// Every request of a client and of a file whose server is killed, or stopped, while it is under
// way. UCXIO_DEATHS is how often each (1).
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <optional>
#include <ostream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/process/test_peer.hpp"
#include "support/transports/client_requests.hpp"
#include "support/transports/network.hpp"
#include "support/transports/url_scheme.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/request.hpp"
#include "ucx/url.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds client_deadline{300};
/// By which a server that is silent is dead; it bounds how long UCX may have memory.
constexpr std::chrono::seconds client_heartbeat{2};

int client_deaths() {
  const char* const told = std::getenv("UCXIO_DEATHS");
  return told != nullptr ? std::max(std::atoi(told), 1) : 1;
}

std::size_t entries_of(const char* folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder),
                                                std::filesystem::directory_iterator()));
}

/// What this process has, beside memory.
struct possessions {
  std::size_t files = entries_of("/proc/self/fd");
  std::size_t threads = entries_of("/proc/self/task");
  bool is_within(const possessions& most) const noexcept {
    return files <= most.files && threads <= most.threads;
  }
};

void PrintTo(const possessions& all, std::ostream* out) {
  *out << all.files << " descriptors, " << all.threads << " threads";
}

std::vector<request_kind> requests_of_both() {
  std::vector<request_kind> all = requests_of_client();
  for (request_kind& each : requests_of_file()) all.push_back(std::move(each));
  return all;
}

/// A server of a store in another process, and a client that this thread drives.
class served_store_peer {
 public:
  explicit served_store_peer(const std::string& scheme, std::chrono::nanoseconds timeout = 20s)
      : by_{scheme, secrets_ / ""} {
    files_.make("file", "content");
    peer.emplace("tcp");
    const std::string where = peer->ask("serve_by " + by_.name + ' ' + by_.folder.string());
    peer->ask("publish_store " + (files_ / "").string());
    client_options options{.context = by_.context()};
    if (!by_.is_of_ucx()) options.context.transports.clear();  // the URL says it
    options.worker.heartbeat_interval = patience(client_heartbeat / 4);
    options.worker.heartbeat_timeout = patience(client_heartbeat);
    over.emplace(url(where), options);
    at.over = &*over;
    at.each.timeout = timeout;
    at.open_files();
  }

  std::optional<test_peer> peer;
  std::optional<client> over;
  request_subjects at;

 private:
  const temporary_directory secrets_;
  const temporary_directory files_;
  const url_scheme by_;
};

class ClientDeath : public testing::TestWithParam<std::string> {
 protected:
  /// Loses a server, in the same way each time, for each kind of request. What this process has
  /// does not grow: UCX keeps what it has made once. A thread that resolves names may still be
  /// there when it is counted first.
  template <class Lose>
  static void lose_many(const Lose& lose) {
    const std::vector<request_kind> kinds = requests_of_both();
    lose(kinds.front());
    const possessions before;
    for (const request_kind& each : kinds) {
      SCOPED_TRACE(each.name);
      for (int i = 0; i < client_deaths(); ++i) lose(each);
      EXPECT_TRUE(soon([&] { return possessions().is_within(before); }))
          << testing::PrintToString(before) << " became " << testing::PrintToString(possessions());
    }
  }
};

TEST_P(ClientDeath, OfAKilledServerEndsEachRequest) {
  lose_many([](const request_kind& kind) {
    served_store_peer served(GetParam());
    served.peer->process().stop();
    request asked = kind.start(served.at);
    for (int i = 0; i < 100; ++i) served.over->worker().progress();
    const clock::time_point begin = clock::now();
    served.peer->process().kill();
    std::error_code ec;
    asked.wait(ec);
    // A short write may have been taken by the system.
    if (!kind.moves_bytes || ec) {
      EXPECT_EQ(ec, errc::connection_reset) << asked.description();
    }
    EXPECT_LT(clock::now() - begin, patience(client_heartbeat + 10s));
    served.over->list({}, ec);
    EXPECT_EQ(ec, errc::connection_reset);
  });
}

TEST_P(ClientDeath, OfAStoppedServerEndsEachRequestInTime) {
  lose_many([](const request_kind& kind) {
    served_store_peer served(GetParam(), client_deadline);
    served.peer->process().stop();
    const clock::time_point begin = clock::now();
    request asked = kind.start(served.at);
    std::error_code ec;
    asked.wait(ec);
    const auto took = clock::now() - begin;
    if (!kind.moves_bytes || ec) {
      // A machine that is slow may find the server dead first.
      const bool is_dead = ec == errc::connection_reset && took >= client_heartbeat / 2;
      EXPECT_TRUE(ec == errc::timed_out || is_dead) << asked.description() << ": " << ec.message();
    }
    EXPECT_LT(took, patience(client_heartbeat + 10s));
    served.peer->process().resume();
  });
}

std::string name_of_client_death(const testing::TestParamInfo<std::string>& each) {
  return each.param;
}

INSTANTIATE_TEST_SUITE_P(, ClientDeath, testing::Values("ucx", "socket", "unix"),
                         name_of_client_death);
#if UCXIO_HAS_TLS
INSTANTIATE_TEST_SUITE_P(ByTls, ClientDeath, testing::Values("tls"), name_of_client_death);
#endif

}  // namespace
}  // namespace ucx::test
