// A server whose options name no transport: TLS at its port, with a token of this user that is
// made, and on loopback a Unix socket beside it.
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/basics/changed_variable.hpp"
#include "support/basics/soon.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "ucx/client.hpp"
#include "ucx/context.hpp"
#include "ucx/error.hpp"
#include "ucx/fstream.hpp"
#include "ucx/server.hpp"
#include "ucx/token_file.hpp"
#include "ucx/url.hpp"

namespace ucx::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* names_ucx = "context.transports = {\"ucx\"}";

/// Has directories of its own for tokens and sockets.
class DefaultServer : public testing::Test {
 protected:
  using outcome = std::pair<std::error_code, std::string>;

  DefaultServer() {
    std::filesystem::create_directory(folder_ / "run");
    std::filesystem::permissions(folder_ / "run", std::filesystem::perms::owner_all);
  }
  std::filesystem::path tokens() const { return folder_ / "config/ucxio/tokens"; }

  template <class Call>
  static outcome outcome_of(Call call) {
    try {
      call();
    } catch (const error& failed) {
      return {failed.code(), failed.what()};
    }
    return {};
  }
  static outcome outcome_of_making(const server_options& options) {
    return outcome_of([&] { const server made(options); });
  }
  static outcome outcome_of_connecting(const url& there, const client_options& options = {}) {
    return outcome_of([&] { const client made(there, options); });
  }

  const temporary_directory folder_;
  const changed_variable config_{"XDG_CONFIG_HOME", (folder_ / "config").c_str()};
  const changed_variable run_{"XDG_RUNTIME_DIR", (folder_ / "run").c_str()};
  const changed_variable token_{"UCXIO_TOKEN", nullptr};
};

TEST_F(DefaultServer, IsReadByItsUrlAlone) {
  server served;
  EXPECT_THAT(served.url(), StartsWith("ucxs://127.0.0.1:"));
  std::string text = pattern_text(300'000);
  const publication shown =
      served.publish("a text", std::as_writable_bytes(std::span(text)), access::read_write);
  EXPECT_EQ(shown.url(), served.url("a text"));
  ifstream in(served.url("a text"));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), text) << in.error_message();
  ofstream out(served.url("a text"), std::ios::in | std::ios::out);
  out << "begin" << std::flush;
  EXPECT_TRUE(out) << out.error_message();
  EXPECT_THAT(text, StartsWith("begin"));
  client by_url(served.url());
  EXPECT_THAT(by_url.transports(), ElementsAre("socket/unix"));
  EXPECT_EQ(by_url.identity(), "owner, user " + std::to_string(::geteuid()));
}

TEST_F(DefaultServer, MakesATokenThatOnlyThisUserReads) {
  const server served;
  struct ::stat facts = {};
  ASSERT_EQ(::stat(tokens().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777U, 0600U);
  client_options by_token;
  by_token.context.token_file = tokens();
  client by_tls(served.url(), by_token);
  EXPECT_THAT(by_tls.transports(), ElementsAre("tls/tcp"));
}

TEST_F(DefaultServer, IsNotReachedByPlainUcx) {
  const server served;
  const url there("127.0.0.1", url(served.url()).port());
  EXPECT_TRUE(outcome_of_connecting(there).first);
  // It asks what is spoken there, for a second at most.
  EXPECT_TRUE(soon([&] { return outcome_of_connecting(there).first == errc::not_secure; }));
  EXPECT_EQ(served.statistics().clients_served, 0U);
}

TEST_F(DefaultServer, LetsNoClientInThatHasAnotherToken) {
  const server served;
  client_options other;
  other.context.token_file = folder_ / "others";
  token_file(other.context.token_file).create("own");
  EXPECT_EQ(outcome_of_connecting(url(served.url()), other).first, errc::permission_denied);
  EXPECT_EQ(served.statistics().clients_served, 0U);
}

/// As a process of another container is, that neither socket nor token is there for.
TEST_F(DefaultServer, LetsNoClientInThatHasNoToken) {
  const server served;
  std::filesystem::create_directory(folder_ / "elsewhere");
  const changed_variable config("XDG_CONFIG_HOME", (folder_ / "elsewhere").c_str());
  const changed_variable run("XDG_RUNTIME_DIR", (folder_ / "elsewhere").c_str());
  const auto [why, words] = outcome_of_connecting(url(served.url()));
  EXPECT_EQ(why, errc::permission_denied);
  EXPECT_THAT(words, HasSubstr("there is no token"));
  EXPECT_EQ(served.statistics().clients_served, 0U);
}

TEST_F(DefaultServer, IsOneOfSeveralInAProcess) {
  std::vector<server> all(3);
  std::vector<publication> shown;
  std::array<std::byte, 8> bytes = {};
  for (server& each : all) {
    shown.push_back(each.publish(std::to_string(shown.size()), bytes, access::read));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    client one(all[i].url());
    const std::vector<entry> found = one.list();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found.front().name, std::to_string(i));
  }
  EXPECT_EQ(token_file(tokens()).list().size(), 1U);
}

TEST_F(DefaultServer, NeedsATokenBeyondLoopback) {
  const auto [why, words] = outcome_of_making({.bind = "0.0.0.0:0"});
  EXPECT_EQ(why, errc::permission_denied);
  EXPECT_THAT(words, AllOf(HasSubstr("0.0.0.0:"), HasSubstr("ucxio token new"),
                           HasSubstr(names_ucx), HasSubstr("`insecure`")));
  EXPECT_FALSE(std::filesystem::exists(tokens()));
  token_file(tokens()).create("alice");
  const server served({.bind = "0.0.0.0:0"});
  EXPECT_THAT(served.url(), StartsWith("ucxs://"));
  const client by_tls("ucxs://127.0.0.1:" + std::to_string(served.address().socket.port()));
  EXPECT_THAT(by_tls.transports(), ElementsAre("tls/tcp"));
}

TEST_F(DefaultServer, RefusesWhatNeedsUcx) {
  const std::vector<std::pair<std::string, void (*)(server_options&)>> all = {
      {"empty `bind`", [](server_options& options) { options.bind.clear(); }},
      {"`context.devices`", [](server_options& options) { options.context.devices = {"lo"}; }},
      {"`context.configuration`",
       [](server_options& options) {
         options.context.configuration = {{"TCP_CM_REUSEADDR", "y"}};
       }},
      {"`context.require_rdma`",
       [](server_options& options) { options.context.require_rdma = true; }},
      {"`worker.terms.require_rdma`",
       [](server_options& options) { options.worker.terms.require_rdma = true; }},
      {"`worker.terms.transports`",
       [](server_options& options) { options.worker.terms.transports = {"tcp"}; }},
      {"`precedence::environment`",
       [](server_options& options) {
         options.context.configuration_precedence = precedence::environment;
       }},
      {"`feature::tag`",
       [](server_options& options) {
         options.context.features = options.context.features | feature::tag;
       }},
      {"`feature::stream`",
       [](server_options& options) {
         options.context.features = options.context.features | feature::stream;
       }},
      {"`insecure`", [](server_options& options) { options.insecure = true; }},
  };
  for (const auto& [what, change] : all) {
    server_options options;
    change(options);
    const auto [why, words] = outcome_of_making(options);
    EXPECT_EQ(why, errc::bad_configuration) << what;
    EXPECT_THAT(words, AllOf(HasSubstr(what), HasSubstr(names_ucx)));
    options.context.transports = {"ucx"};
    const std::error_code by_ucx = outcome_of_making(options).first;
    // Where there is no RDMA.
    EXPECT_TRUE(!by_ucx || (options.context.require_rdma && by_ucx == errc::no_rdma))
        << what << ": " << by_ucx.message();
  }
  EXPECT_FALSE(std::filesystem::exists(tokens()));
}

TEST_F(DefaultServer, HasNoWorkerAddress) {
  server served;
  EXPECT_FALSE(served.address().socket.empty());
  EXPECT_TRUE(served.address().worker.empty());
  const auto [why, words] = outcome_of([&] { served.publish_address(folder_ / "address"); });
  EXPECT_EQ(why, errc::not_supported);
  EXPECT_THAT(words, AllOf(HasSubstr("no worker address"), HasSubstr(names_ucx)));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "address"));
  const auto [missed, said] = outcome_of([&] { const client made(served.address().worker); });
  EXPECT_EQ(missed, errc::bad_address);
  EXPECT_THAT(said, HasSubstr("by its URL"));
}

/// In /proc root makes nothing, either.
TEST_F(DefaultServer, HasTheUnixSocketAloneWhereNoTokenCanBeMade) {
  const changed_variable config("XDG_CONFIG_HOME", "/proc");
  server served;
  EXPECT_THAT(served.url(), StartsWith("ucx+unix://"));
  std::array<std::byte, 8> bytes = {};
  const publication shown = served.publish("x", bytes, access::read);
  EXPECT_EQ(client(served.url()).list().size(), 1U);
  EXPECT_THAT(outcome_of_making({.bind = "127.0.0.1:1"}).second,
              HasSubstr("making the token of this user"));
}

/// Whatever the text of the address is: one that asks for no port.
TEST_F(DefaultServer, AsksForNoPortByAnyAddressOfLoopback) {
  const changed_variable config("XDG_CONFIG_HOME", "/proc");
  for (const char* const each : {"127.0.0.1:0", "localhost:0", "[::1]:0", "127.0.0.2:0"}) {
    const server served({.bind = each});
    EXPECT_THAT(served.url(), StartsWith("ucx+unix://")) << each;
  }
  for (const char* const each : {"127.0.0.1:1", "localhost:1", "[::1]:1"}) {
    std::error_code ec;
    const server served({.bind = each}, ec);
    EXPECT_TRUE(ec) << each;
  }
}

TEST_F(DefaultServer, HasOneTransportWhereOneIsNamed) {
  EXPECT_THAT(server({.bind = "unix:"}).url(), StartsWith("ucx+unix://"));
  server_options named;
  named.context.transports = {"socket"};
  EXPECT_THAT(server(named).url(), StartsWith("ucx+tcp://127.0.0.1:"));
  named.context.transports = {"ucx"};
  EXPECT_THAT(server(named).url(), StartsWith("ucx://127.0.0.1:"));
  named.bind = "0.0.0.0:0";
  EXPECT_EQ(outcome_of_making(named).first, errc::not_secure);
  EXPECT_FALSE(std::filesystem::exists(tokens()));
}

}  // namespace
}  // namespace ucx::test
