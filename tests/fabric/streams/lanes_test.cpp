// Streams over several connections: they give what a stream over one gives, and a file.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "support/basics/effort.hpp"
#include "support/basics/soon.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/streams/stream_script.hpp"
#include "support/transports/network.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/fstream.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using std::ios;

/// Serves with two workers, and without shared memory: bytes come and go by messages.
server_options over_messages(std::size_t workers = 2) {
  server_options chosen;
  chosen.workers = workers;
  chosen.context.share_memory = false;
  return chosen;
}

/// A server with one name.
struct text_by_messages {
  explicit text_by_messages(std::string text, const server_options& options = over_messages())
      : bytes(std::move(text)),
        server(options),
        published(
            server.publish("text", std::as_writable_bytes(std::span(bytes)), access::read_write)) {}

  std::string url() const { return server.url("text"); }

  std::string bytes;
  ucx_server server{served_there()};
  publication published;
};

std::size_t lanes_of(const ifstream& in) { return in.rdbuf()->statistics().connections; }

class LanedStreamOracle : public testing::TestWithParam<std::size_t> {};

/// The same calls on both, from a seed.
void read_alike(std::istream& ours, std::istream& oracle, std::size_t size, std::size_t longest) {
  std::mt19937 dice(static_cast<unsigned>(size));
  const auto below = [&dice](std::size_t end) { return dice() % end; };
  std::string here;
  std::string there;
  for (int step = 0; step < 400; ++step) {
    SCOPED_TRACE(step);
    if (below(3) == 0) {
      const auto to = static_cast<std::streamoff>(below(size + 10));
      ours.clear();
      oracle.clear();
      ours.seekg(std::min(to, static_cast<std::streamoff>(size)));
      oracle.seekg(std::min(to, static_cast<std::streamoff>(size)));
    } else {
      here.assign(below(longest), '.');
      there.assign(here.size(), '.');
      ours.read(here.data(), static_cast<std::streamsize>(here.size()));
      oracle.read(there.data(), static_cast<std::streamsize>(there.size()));
      ASSERT_EQ(ours.gcount(), oracle.gcount());
      ASSERT_TRUE(here == there);
    }
    ASSERT_EQ(ours.rdstate(), oracle.rdstate());
    ASSERT_EQ(ours.tellg(), oracle.tellg());
  }
}

TEST_P(LanedStreamOracle, Agrees) {
  const temporary_directory directory;
  for (const std::size_t buffer :
       {std::size_t{5}, std::size_t{4096}, stream_options().buffer_size}) {
    SCOPED_TRACE("buffer " + std::to_string(buffer));
    const stream_options options{.buffer_size = buffer, .connections = GetParam()};
    const std::size_t size = std::min<std::size_t>(40 * buffer + 100, 3'000'000);
    const std::string text = sample_text(size, size + 1);
    const text_by_messages served(text);
    std::ifstream oracle(directory.make("file", text), ios::binary);
    ifstream ours(served.url(), ios::binary, options);
    ASSERT_TRUE(ours.is_open()) << ours.error_message();
    EXPECT_EQ(lanes_of(ours), GetParam());
    read_alike(ours, oracle, size,
               std::max<std::size_t>(200, std::min<std::size_t>(2 * buffer, 200'000)));
  }
}

INSTANTIATE_TEST_SUITE_P(Lanes, LanedStreamOracle, testing::Values<std::size_t>(1, 2, 4),
                         testing::PrintToStringParamName());

TEST(LanedStream, MovesLargeCalls) {
  const std::string text = sample_text(effort(24'000'000U, 9'000'000U), 3);
  const text_by_messages served(text);
  const stream_options options{.connections = 3};
  std::string into(text.size(), '\0');
  ifstream in(served.url(), ios::binary, options);
  in.read(into.data(), static_cast<std::streamsize>(into.size()));
  EXPECT_TRUE(into == text) << in.error_message();
  EXPECT_EQ(in.peek(), EOF);
}

TEST(LanedStream, ReadsFilesAndStores) {
  const temporary_directory directory;
  const std::string text = sample_text(6'000'000, 4);
  std::filesystem::create_directory(directory / "store");
  directory.make("store/f", text);
  ucx_server serving(over_messages());
  const publication file = serving.publish_file("file", directory / "store/f");
  const publication store = serving.publish_store(directory / "store", {.prefix = "s"});
  for (const char* name : {"file", "s/f"}) {
    ifstream in(serving.url(name), ios::binary, stream_options{.connections = 2});
    std::string into(text.size() + 10, '\0');
    in.read(into.data(), static_cast<std::streamsize>(into.size()));
    EXPECT_EQ(static_cast<std::size_t>(in.gcount()), text.size()) << in.error_message();
    into.resize(text.size());
    EXPECT_TRUE(into == text);
    EXPECT_EQ(lanes_of(in), 2U) << name;
  }
}

TEST(LanedStream, ShowsWhatWasAddedToAFile) {
  const temporary_directory directory;
  const std::filesystem::path path = directory.make("file", std::string(10'000, 'a'));
  ucx_server serving(over_messages());
  const publication file = serving.publish_file("file", path);
  ifstream in(serving.url("file"), ios::binary,
              stream_options{.buffer_size = 1000, .connections = 2});
  std::string into(20'000, '\0');
  in.read(into.data(), 20'000);
  EXPECT_EQ(in.gcount(), 10'000);
  std::ofstream(path, ios::app | ios::binary) << std::string(9'000, 'b');
  in.clear();
  in.read(into.data(), 20'000);
  EXPECT_EQ(in.gcount(), 9'000) << in.error_message();
  EXPECT_EQ(into.substr(0, 9'000), std::string(9'000, 'b'));
}

TEST(LanedStream, SharesItsConnectionsWithOthers) {
  const text_by_messages served(std::string(100, 'x'));
  const stream_options options{.connections = 2};
  std::optional<ifstream> first(std::in_place, served.url(), ios::in, options);
  EXPECT_EQ(lanes_of(*first), 2U);
  EXPECT_EQ(served.server.statistics().clients, 3U) << "the shared client's, and the two";
  std::optional<ifstream> second(std::in_place, served.url(), ios::in, options);
  EXPECT_EQ(served.server.statistics().clients, 3U);
  client shared = client::shared(url(served.url()));
  EXPECT_EQ(lanes_of(ifstream(shared, "text", ios::in, options)), 2U);
  EXPECT_EQ(served.server.statistics().clients_served, 3U);
  first.reset();
  EXPECT_EQ(second->get(), 'x');
  second.reset();
  EXPECT_TRUE(soon([&] { return served.server.statistics().clients == 1; }));
}

TEST(LanedStream, DoesWithoutTheLanesThatItCanNotHave) {
  for (const std::size_t most : {1U, 2U, 3U, 4U}) {
    server_options options = over_messages();
    options.max_clients = most;
    const text_by_messages served(std::string(100'000, 'x'), options);
    ifstream in(served.url(), ios::in, stream_options{.connections = 8});
    EXPECT_EQ(lanes_of(in), most < 3 ? 1 : most - 1) << most;
    std::string into(100'000, '\0');
    in.read(into.data(), 100'000);
    EXPECT_EQ(into, served.bytes) << in.error_message();
  }
}

TEST(LanedStream, IsOneOverWhatIsMappedOrWrittenOrFollowed) {
  const temporary_directory directory;
  std::filesystem::create_directory(directory / "store");
  directory.make("store/f", "text");
  ucx_server serving;
  const publication mapped = serving.allocate("mapped", 1 << 20, access::read_write);
  const publication store = serving.publish_store(directory / "store", {.writable = true});
  const stream_options options{.connections = 2};
  EXPECT_EQ(lanes_of(ifstream(serving.url("mapped"), ios::in, options)), 1U);
  EXPECT_EQ(ofstream(serving.url("f"), ios::app, options).rdbuf()->statistics().connections, 1U);
  EXPECT_EQ(
      ucx::fstream(serving.url("f"), ios::in | ios::out, options).rdbuf()->statistics().connections,
      1U);
  const text_by_messages memory("text");
  EXPECT_EQ(
      ucx::fstream(memory.url(), ios::in | ios::out, options).rdbuf()->statistics().connections,
      1U);
  stream_options follows = options;
  follows.follow_timeout = 10ms;
  EXPECT_EQ(lanes_of(ifstream(serving.url("f"), ios::in, follows)), 1U);
  EXPECT_EQ(lanes_of(ifstream(serving.url("f"), ios::in, options)), 2U);
}

TEST(LanedStream, RefusesANumberThatCanNotBe) {
  const text_by_messages served("text");
  for (const std::size_t number : {std::size_t{0}, stream_options::max_connections + 1}) {
    const ifstream in(served.url(), ios::in, stream_options{.connections = number});
    EXPECT_EQ(in.error(), errc::invalid_argument) << number;
    EXPECT_NE(in.error_message().find("connections"), std::string::npos) << in.error_message();
  }
}

TEST(LanedStream, EndsWhenItsNameIsWithdrawn) {
  text_by_messages served(std::string(50'000'000, 'x'));
  ifstream in(served.url(), ios::in, stream_options{.connections = 3});
  std::string some(1'000'000, '\0');
  in.read(some.data(), 1'000'000);
  EXPECT_TRUE(in.good());
  served.published.close();
  served.bytes.assign(served.bytes.size(), '!');
  while (in.read(some.data(), 1'000'000)) {
    ASSERT_EQ(some.find('!'), std::string::npos);
  }
  EXPECT_TRUE(in.bad());
  EXPECT_EQ(in.error(), errc::revoked);
}

TEST(LanedStream, FailsWithAnyOfItsLanes) {
  for (const std::size_t lost : {0U, 1U, 2U}) {
    const text_by_messages served(std::string(50'000'000, 'x'));
    client own(served.server.url());
    ifstream in(own, "text", ios::in, stream_options{.connections = 2});
    std::string some(100'000, '\0');
    in.read(some.data(), 100'000);
    detail::further_client(own, lost).close();
    while (in.read(some.data(), 100'000)) {
    }
    EXPECT_TRUE(in.bad()) << lost;
    EXPECT_EQ(in.error(), errc::closed) << lost;
  }
}

TEST(LanedStream, GoesOnWithAServerThatWasStartedAgain) {
  const temporary_directory directory;
  const std::string text = sample_text(20'000'000, 5);
  const std::filesystem::path path = directory.make("file", text);
  std::optional<ucx_server> serving(std::in_place, over_messages());
  server_options again = over_messages();
  again.bind = to_string(serving->address().socket);
  std::optional<publication> file = serving->publish_file("file", path);
  ifstream in(serving->url("file"), ios::binary,
              stream_options{.reconnect_timeout = 20s, .connections = 2});
  std::string into(text.size(), '\0');
  in.read(into.data(), 5'000'000);
  file.reset();
  serving.reset();
  serving.emplace(again);
  file = serving->publish_file("file", path);
  in.read(into.data() + 5'000'000, 15'000'000);
  EXPECT_TRUE(into == text) << in.error_message();
  EXPECT_EQ(lanes_of(in), 2U);
}

TEST(ClientLane, IsAConnectionOfItsOwnUntilNobodyHasIt) {
  const text_by_messages served("text");
  client own(served.server.url());
  {
    client first = detail::further_client(own, 1);
    client same = detail::further_client(own, 1);
    client second = detail::further_client(own, 2);
    EXPECT_EQ(&first.worker(), &same.worker());
    EXPECT_NE(&first.worker(), &own.worker());
    EXPECT_NE(&first.worker(), &second.worker());
    EXPECT_EQ(&detail::further_client(own, 0).worker(), &own.worker());
    EXPECT_EQ(served.server.statistics().clients, 3U);
    EXPECT_EQ(first.list().size(), 1U);
  }
  EXPECT_TRUE(soon([&] { return served.server.statistics().clients == 1; }));
  own.close();
  std::error_code ec;
  detail::further_client(own, 1, ec);
  EXPECT_EQ(ec, errc::closed);
  EXPECT_THROW(static_cast<void>(detail::further_client(own, 1)), error);
}

}  // namespace
}  // namespace ucx::test
