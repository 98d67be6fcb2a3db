// Connections of streams by URL that are kept behind their last stream.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/client.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/fstream.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/server.hpp"
#include "ucx/url.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

/// Nothing of an earlier test lingers, and later ones find what is usual.
class Linger : public testing::Test {
 protected:
  Linger() { linger_for(60s); }  // longer than a busy machine takes between two streams
  ~Linger() override { linger_for(10s); }

  static void linger_for(std::chrono::nanoseconds longest) {
    client::set_shared_idle_timeout(0s);
    client::set_shared_idle_timeout(longest);
  }
  static bool opens(const publication& of) { return ifstream(of.url()).get() == 'x'; }
  static std::size_t threads() {
    const std::filesystem::directory_iterator all("/proc/self/task");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }

  const std::vector<std::byte> bytes_{std::size_t{1000}, std::byte{'x'}};
};

/// A server, and one name.
struct one_name {
  explicit one_name(std::span<const std::byte> bytes, const server_options& options = {})
      : served(options), name(served.publish("x", bytes)) {}
  std::uint64_t clients() const { return served.statistics().clients; }

  ucx_server served;
  publication name;
};

TEST_F(Linger, OneFileAfterTheOtherTakesOneConnection) {
  const one_name at(bytes_);
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(opens(at.name)) << i;
  EXPECT_EQ(at.served.statistics().clients_served, 1U);
  EXPECT_EQ(at.served.statistics().opens, 300U);
}

TEST_F(Linger, ManyThreadsTakeOneConnection) {
  const one_name at(bytes_);
  std::vector<std::jthread> all;
  for (int i = 0; i < 4; ++i) {
    all.emplace_back([&] {
      for (int k = 0; k < 100; ++k) EXPECT_TRUE(opens(at.name));
    });
  }
  all.clear();
  EXPECT_EQ(at.served.statistics().clients_served, 1U);
}

TEST_F(Linger, EndsByItselfAndItsThreadToo) {
  const one_name at(bytes_);
  linger_for(30ms);
  const std::size_t before = threads();
  EXPECT_TRUE(opens(at.name));
  EXPECT_TRUE(soon([&] { return at.clients() == 0; }));
  EXPECT_TRUE(soon([&] { return threads() <= before; }));
  EXPECT_TRUE(opens(at.name));
  EXPECT_EQ(at.served.statistics().clients_served, 2U);
}

TEST_F(Linger, OfNoTimeEndsEachConnectionWithItsStream) {
  const one_name at(bytes_);
  linger_for(0s);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(opens(at.name));
  EXPECT_EQ(at.served.statistics().clients_served, 3U);
  EXPECT_TRUE(soon([&] { return at.clients() == 0; }));
}

TEST_F(Linger, IsOverWhenItIsToldSo) {
  const one_name at(bytes_);
  EXPECT_TRUE(opens(at.name));
  EXPECT_EQ(at.clients(), 1U);
  client::set_shared_idle_timeout(0s);
  EXPECT_TRUE(soon([&] { return at.clients() == 0; }));
}

TEST_F(Linger, IsOfSixteenServersAtMost) {
  std::vector<std::unique_ptr<one_name>> all;
  for (int i = 0; i < 18; ++i) all.push_back(std::make_unique<one_name>(bytes_));
  for (const auto& each : all) EXPECT_TRUE(opens(each->name));
  EXPECT_TRUE(soon([&] { return all[0]->clients() + all[1]->clients() == 0; }));
  const auto lingers = [](const auto& each) { return each->clients() == 1; };
  EXPECT_EQ(std::count_if(all.begin(), all.end(), lingers), 16);
}

TEST_F(Linger, OfAServerThatCameAgainIsNoticedByTheNextOpen) {
  std::optional<one_name> at(std::in_place, bytes_);
  const std::string bind = to_string(at->served.address().socket);
  EXPECT_TRUE(opens(at->name));
  at.reset();
  at.emplace(bytes_, server_options{.bind = bind});
  EXPECT_TRUE(opens(at->name));
}

TEST_F(Linger, LeavesWhatIsOpenAlone) {
  const one_name at(bytes_);
  std::optional<client> shared = client::shared(url(at.served.url()));
  remote_region region = shared->open("x", access::read);
  std::optional<endpoint> connection = shared->connection();
  shared.reset();
  client::set_shared_idle_timeout(0s);
  std::vector<std::byte> into(bytes_.size());
  EXPECT_TRUE(soon([&] {
    region.read_at(0, into);
    return at.clients() == 0;  // its client has said goodbye
  }));
  EXPECT_EQ(into, bytes_);
  EXPECT_FALSE(connection->status());
}

TEST_F(Linger, OfAClosedClientIsNone) {
  const one_name at(bytes_);
  client::shared(url(at.served.url())).close();
  EXPECT_TRUE(soon([&] { return at.clients() == 0; }));
  EXPECT_TRUE(opens(at.name));
}

}  // namespace
}  // namespace ucx::test
