// Servers and clients by certificates: who is let in, what the asking side is told, and when a
// connection ends.
#include <sys/stat.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/basics/changed_variable.hpp"
#include "support/basics/soon.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/files/test_authority.hpp"
#include "ucx/access_rules.hpp"
#include "ucx/client.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/server.hpp"
#include "ucx/socket_address.hpp"
#include "ucx/token_file.hpp"
#include "ucx/url.hpp"
#include "ucx/worker.hpp"

namespace ucx::detail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr const char* name_of_build = "uri:spiffe://cluster/build";

class CertificateServer : public testing::Test {
 protected:
  server served(std::optional<access_rules> rules = {}) {
    context_options chosen{.transports = {"tls"}, .share_memory = false};
    chosen.token_file = folder_ / "tokens";
    chosen.certificates = servers_;
    chosen.log = {.level = log_level::info, .sink = [this](log_level, std::string_view line) {
                    const std::lock_guard guard(mutex_);
                    log_ += line;
                    log_ += '\n';
                  }};
    server_options options;
    options.context = chosen;
    options.rules = std::move(rules);
    options.audit_file = folder_ / "audit";
    return server(options);
  }
  client_options options_of(const certificate_files& files, const char* tokens = "none") {
    client_options made;
    made.context.share_memory = false;
    made.context.token_file = folder_ / tokens;
    made.context.certificates = files;
    return made;
  }
  client client_of(const server& there, const certificate_files& files) {
    return client(url(there.url()), options_of(files));
  }
  /// Returns why a client is not connected, and in which words.
  std::pair<std::error_code, std::string> failure_towards(const server& there,
                                                          const certificate_files& files) {
    try {
      const client connected(url(there.url()), options_of(files));
    } catch (const error& thrown) {
      return {thrown.code(), thrown.what()};
    }
    return {};
  }
  static bool has_ended(client& of) {
    return test::soon([&] {
      std::error_code ec;
      of.list({}, ec);
      return ec == errc::connection_reset || ec == errc::permission_denied ||
             ec == errc::not_secure;
    });
  }
  bool logs(const std::string& words) {
    return test::soon([&] {
      const std::lock_guard guard(mutex_);
      return log_.find(words) != log_.npos;
    });
  }

  test::temporary_directory folder_;
  test::test_authority authority_{folder_ / ""};
  certificate_files servers_ =
      authority_.issue("server", {.names = "IP:127.0.0.1", .usage = "serverAuth"});
  certificate_files clients_ = authority_.issue("client");

 private:
  std::mutex mutex_;
  std::string log_;
};

TEST_F(CertificateServer, KnowsItsClientByItsName) {
  // A process is the owner of its own servers, whom rules can restrict.
  server serving = served(access_rules().deny(std::string("certificate ") + name_of_build,
                                              access_right::all, "secrets/**"));
  const std::vector<std::byte> memory(4096, std::byte{7});
  const publication shown = serving.publish("results/a", std::span(memory));
  const publication hidden = serving.publish("secrets/a", std::span(memory));
  client reader = client_of(serving, clients_);
  EXPECT_THAT(reader.transports(), ElementsAre("tls/tcp"));
  EXPECT_EQ(reader.identity(), std::string("owner, certificate \"") + name_of_build + '"');
  EXPECT_THAT(reader.list(), SizeIs(1));
  std::vector<std::byte> bytes(memory.size());
  reader.open("results/a").read_at(0, bytes);
  EXPECT_EQ(bytes, memory);
  std::error_code ec;
  const remote_region refused = reader.open("secrets/a", access::read, {}, ec);
  EXPECT_EQ(ec, errc::no_such_name);
  EXPECT_TRUE(logs(std::string("was let in by the certificate \"") + name_of_build));
  EXPECT_TRUE(test::soon([&] {
    const std::string told = test::content_of(folder_ / "audit");
    return told.find("\"who\":\"owner, certificate \\\"uri:spiffe://cluster/build\\\"\"") !=
               told.npos &&
           told.find("results/a") != told.npos;
  })) << test::content_of(folder_ / "audit");
}

TEST_F(CertificateServer, RefusesAForeignClientInOneWay) {
  const server serving = served();
  test::test_authority other(folder_ / "", "other");
  certificate_files foreign = other.issue("foreign");
  foreign.ca = authority_.ca();
  for (const certificate_files& each : {foreign, authority_.issue("c", {.usage = "serverAuth"})}) {
    const auto told = failure_towards(serving, each);
    EXPECT_EQ(told.first, errc::permission_denied) << told.second;
    EXPECT_THAT(told.second, HasSubstr("refused the certificate"));
  }
  EXPECT_TRUE(logs("was not let in: its certificate is not accepted: unable to get"));
  EXPECT_TRUE(logs("was not let in: its certificate is not accepted: its extended key usage"));
}

TEST_F(CertificateServer, IsRefusedByItsClientForDistinctReasons) {
  certificate_files other_ca = clients_;
  const test::test_authority other(folder_ / "", "other");
  other_ca.ca = other.ca();
  const server serving = served();
  auto told = failure_towards(serving, other_ca);
  EXPECT_EQ(told.first, errc::not_secure);
  EXPECT_THAT(told.second, HasSubstr("not from a CA"));
  servers_ = authority_.issue("server", {.names = "DNS:node7", .usage = "serverAuth"});
  const server elsewhere = served();
  told = failure_towards(elsewhere, clients_);
  EXPECT_EQ(told.first, errc::not_secure);
  EXPECT_THAT(told.second, HasSubstr("another host"));
}

TEST_F(CertificateServer, ListensBeyondTheHostWithoutATokenToo) {
  server_options options;
  options.bind = "0.0.0.0:0";
  options.context.certificates = servers_;
  options.context.token_file = folder_ / "none";
  const server open(options);
  EXPECT_THAT(open.url(), testing::StartsWith("ucxs://"));
}

TEST_F(CertificateServer, LetsTokensInToo) {
  const std::string text = token_file(folder_ / "tokens").create("alice");
  token_file(folder_ / "uses").add("127.0.0.1", text);
  const server serving = served();
  client by_token(url(serving.url()), options_of({}, "uses"));
  EXPECT_EQ(by_token.identity(), "owner, token \"alice\"");
  EXPECT_EQ(client_of(serving, clients_).identity(),
            std::string("owner, certificate \"") + name_of_build + '"');
}

TEST_F(CertificateServer, TakesTheClientsFilesFromTheEnvironment) {
  const test::changed_variable cert("UCXIO_CERT", clients_.cert.c_str());
  const test::changed_variable key("UCXIO_KEY", clients_.key.c_str());
  const test::changed_variable ca("UCXIO_CA", clients_.ca.c_str());
  const server serving = served();
  EXPECT_EQ(client_of(serving, {}).identity(),
            std::string("owner, certificate \"") + name_of_build + '"');
}

/// A user exports the variables for programs that connect.
TEST_F(CertificateServer, GoesByItsOptionsAlone) {
  token_file(folder_ / "tokens").create("alice");
  const certificate_files both =
      authority_.issue("both", {.names = "IP:127.0.0.1", .usage = "serverAuth,clientAuth"});
  servers_ = {};
  std::optional<server> serving;
  {
    const test::changed_variable cert("UCXIO_CERT", both.cert.c_str());
    const test::changed_variable key("UCXIO_KEY", both.key.c_str());
    const test::changed_variable ca("UCXIO_CA", both.ca.c_str());
    serving.emplace(served());
  }
  EXPECT_EQ(failure_towards(*serving, clients_).first, errc::permission_denied);
  std::error_code ec;
  serving->reload_certificates(ec);
  EXPECT_EQ(ec, errc::not_supported);
}

/// Who connects by an address alone has that in the server's certificate.
TEST_F(CertificateServer, IsOfTheAddressThatIsDialled) {
  context_options options{.transports = {"tls"}, .share_memory = false};
  options.token_file = folder_ / "none";
  options.certificates = clients_;
  context bare(options);
  worker driver(bare);
  const server serving = served();
  const auto port_of = [](const server& of) {
    return socket_address("127.0.0.1", url(of.url()).port());
  };
  const endpoint there(driver, port_of(serving));
  EXPECT_TRUE(logs("was let in by the certificate"));
  servers_ = authority_.issue("server", {.names = "DNS:localhost", .usage = "serverAuth"});
  const server elsewhere = served();
  std::error_code ec;
  const endpoint refused(driver, port_of(elsewhere), {}, ec);
  EXPECT_EQ(ec, errc::not_secure);
  const endpoint by_name(driver, {"localhost", port_of(elsewhere).port()}, {}, ec);
  EXPECT_FALSE(ec) << ec.message();
}

TEST_F(CertificateServer, NeedsAnIdentityBeyondTheEnvironment) {
  const test::changed_variable cert("UCXIO_CERT", servers_.cert.c_str());
  const test::changed_variable key("UCXIO_KEY", servers_.key.c_str());
  const test::changed_variable ca("UCXIO_CA", servers_.ca.c_str());
  server_options options;
  options.bind = "0.0.0.0:0";
  options.context.token_file = folder_ / "none";
  try {
    const server open(options);
    ADD_FAILURE() << "it listens at " << open.url();
  } catch (const error& thrown) {
    EXPECT_EQ(thrown.code(), errc::permission_denied) << thrown.what();
  }
}

/// A context of a program that listens and connects has the files for connecting.
TEST_F(CertificateServer, ListensByItsOptionsAlone) {
  const test::changed_variable cert("UCXIO_CERT", clients_.cert.c_str());
  const test::changed_variable key("UCXIO_KEY", clients_.key.c_str());
  const test::changed_variable ca("UCXIO_CA", clients_.ca.c_str());
  context_options options{.transports = {"tls"}, .share_memory = false};
  options.token_file = folder_ / "none";
  context bare(options);
  worker driver(bare);
  std::error_code ec;
  const listener none(driver, socket_address("127.0.0.1:0"), {}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
}

TEST_F(CertificateServer, EndsAConnectionWhoseCertificateWasRevoked) {
  servers_.crl = authority_.write_crl();
  server serving = served();
  const certificate_files others = authority_.issue("other", {.names = "DNS:other"});
  client revoked = client_of(serving, clients_);
  client kept = client_of(serving, others);
  EXPECT_THAT(revoked.list(), SizeIs(0));
  authority_.revoke(clients_);
  authority_.write_crl();
  serving.reload_certificates();
  EXPECT_TRUE(has_ended(revoked));
  EXPECT_TRUE(logs("ends: the peer's certificate: certificate revoked"));
  EXPECT_EQ(failure_towards(serving, clients_).first, errc::permission_denied);
  EXPECT_THAT(kept.list(), SizeIs(0));
}

TEST_F(CertificateServer, KeepsItsCertificatesWhereAFileIsWrong) {
  servers_.ca = folder_ / "trusted.pem";
  std::filesystem::copy_file(authority_.ca(), servers_.ca);
  server serving = served();
  client connected = client_of(serving, clients_);
  std::ofstream(servers_.ca) << "garbage";
  std::error_code ec;
  serving.reload_certificates(ec);
  EXPECT_EQ(ec, errc::bad_configuration);
  EXPECT_TRUE(logs("the certificates stay as they were"));
  EXPECT_THAT(connected.list(), SizeIs(0));
  EXPECT_FALSE(failure_towards(serving, clients_).first);
}

TEST_F(CertificateServer, HasNoneToReadAgainWithoutThem) {
  token_file(folder_ / "tokens").create("alice");
  servers_ = {};
  server serving = served();
  std::error_code ec;
  serving.reload_certificates(ec);
  EXPECT_EQ(ec, errc::not_supported);
}

/// A machine that stalls may need a longer life to connect at all.
TEST_F(CertificateServer, EndsAConnectionWhoseCertificateExpires) {
  const server serving = served();
  for (long life = 4; life < 100; life *= 2) {
    const certificate_files brief = authority_.issue("brief", {.end = life});
    std::error_code ec;
    client connected(url(serving.url()), options_of(brief), ec);
    if (ec) continue;
    bool has_failed = false;
    for (int waits = 0; waits < 5 && !has_failed; ++waits) has_failed = has_ended(connected);
    EXPECT_TRUE(has_failed);
    EXPECT_TRUE(logs("ends: the peer's certificate: certificate has expired"));
    return;
  }
  FAIL() << "no certificate lived long enough";
}

}  // namespace
}  // namespace ucx::detail
