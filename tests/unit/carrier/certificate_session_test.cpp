// Certificates between two sessions of TLS: who is proven, who is refused, and when that ends.
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/logger.hpp"
#include "base/owned_descriptor.hpp"
#include "carrier/carrier_failure.hpp"
#include "carrier/certificate_name.hpp"
#include "carrier/meeting_book.hpp"
#include "carrier/named_certificates.hpp"
#include "carrier/tls_openssl.hpp"
#include "support/basics/changed_variable.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/files/test_authority.hpp"
#include "ucx/error.hpp"
#include "ucx/token_file.hpp"
#include "unit/carrier/bare_peer.hpp"

namespace ucx::detail {
namespace {

using test::certificate_terms;
using test::test_authority;
using testing::HasSubstr;
using shaken = tls_session::handshake;

const certificate_terms of_node7{.names = "DNS:node7,IP:127.0.0.1,IP:::1", .usage = "serverAuth"};

/// Two sides with a certificate each, of one CA. The server's tokens are in a file, too.
class CertificateSession : public testing::Test {
 protected:
  CertificateSession() { std::tie(client_socket_, server_socket_) = test::pair_of_sockets(); }

  tls_settings settings_of(const certificate_files& files, const char* tokens = "none") {
    tls_settings made;
    made.tokens = folder_ / tokens;
    made.log = log_.get();
    made.certificates = files;
    made.wall_clock = [this] { return std::time(nullptr) + shift_.load(); };
    return made;
  }
  std::shared_ptr<tls_context> context_of(const certificate_files& files,
                                          const char* tokens = "none") {
    return make_tls(settings_of(files, tokens)).or_throw();
  }
  /// Returns the code of what is wrong with the files, and adds its text to `words`.
  std::error_code fault_of(const certificate_files& files, std::string& words) {
    const auto made = make_tls(settings_of(files));
    if (made) return {};
    words = made.why().text;
    return made.why().code;
  }
  /// Has both sides shake hands, as far as they go.
  void shake(tls_context& server, tls_context& client, const std::string& towards = "node7:7471") {
    server_ = server.accept();
    client_ = client.connect(towards);
    shake_on();
  }
  void shake_on() {
    client_state_ = server_state_ = shaken::going_on;
    for (int steps = 0; steps < 10; ++steps) {
      if (client_state_ == shaken::going_on) client_state_ = client_->shake(client_socket_.get());
      if (server_state_ == shaken::going_on) server_state_ = server_->shake(server_socket_.get());
    }
  }
  void shake(const certificate_files& server, const certificate_files& client,
             const std::string& towards = "node7:7471") {
    server_context_ = context_of(server);
    client_context_ = context_of(client);
    shake(*server_context_, *client_context_, towards);
  }
  bool both_are_done() const {
    return client_state_ == shaken::done && server_state_ == shaken::done;
  }
  /// The server has refused the client, which learns that by its next read.
  void expect_refusal(const std::string& words) {
    EXPECT_EQ(server_state_, shaken::failed);
    EXPECT_THAT(server_->words(), HasSubstr(words));
    EXPECT_EQ(server_->certificate(), "");
    if (client_state_ == shaken::done) {
      std::byte one = {};
      const ::iovec part{&one, 1};
      EXPECT_EQ(client_->read(client_socket_.get(), {&part, 1}, scratch_), -1);
    }
    EXPECT_EQ(client_->why(), status_certificate_refused);
    EXPECT_THAT(client_->words(), HasSubstr("alert handshake failure"));  // one for all
    EXPECT_EQ(carrier_failure_of(client_->why())->code, errc::permission_denied);
  }
  /// The client has refused the server, and says why.
  void expect_complaint(ucs_status_t why, const std::string& words) {
    EXPECT_EQ(client_state_, shaken::failed);
    EXPECT_EQ(client_->why(), why);
    EXPECT_EQ(carrier_failure_of(why)->code, errc::not_secure);
    EXPECT_THAT(std::string(carrier_failure_of(why)->words), HasSubstr(words));
    EXPECT_NE(server_state_, shaken::done);
  }
  void write(const std::string& name, const std::string& text, ::mode_t mode) {
    std::ofstream(folder_ / name) << text;
    ::chmod((folder_ / name).c_str(), mode);
  }

  test::temporary_directory folder_;
  std::unique_ptr<logger> log_ = *logger::make({}, "test");
  test_authority authority_{folder_ / ""};
  certificate_files servers_ = authority_.issue("server", of_node7);
  certificate_files clients_ = authority_.issue("client");
  std::atomic<long> shift_ = 0;  // of the clock
  owned_descriptor client_socket_;
  owned_descriptor server_socket_;
  std::shared_ptr<tls_context> server_context_;
  std::shared_ptr<tls_context> client_context_;
  std::unique_ptr<tls_session> client_;
  std::unique_ptr<tls_session> server_;
  shaken client_state_ = shaken::going_on;
  shaken server_state_ = shaken::going_on;
  std::vector<std::byte> scratch_ = std::vector<std::byte>(tls_context::scratch_size);
};

TEST_F(CertificateSession, ProvesBothSides) {
  shake(servers_, clients_);
  ASSERT_TRUE(both_are_done()) << client_->words() << server_->words();
  EXPECT_EQ(server_->certificate(), "uri:spiffe://cluster/build");
  EXPECT_EQ(server_->peer(), "");
  EXPECT_TRUE(server_->is_accepted());
  EXPECT_FALSE(server_->is_invited());
  EXPECT_EQ(server_->certificate_fault(), nullptr);
  EXPECT_EQ(client_->certificate_fault(), nullptr);
}

TEST_F(CertificateSession, IsForTheNamesOfItsServer) {
  for (const char* const towards : {"node7:1", "NODE7:1", "127.0.0.1:1", "[::1]:1", "::1:1"}) {
    std::tie(client_socket_, server_socket_) = test::pair_of_sockets();
    shake(servers_, clients_, towards);
    EXPECT_TRUE(both_are_done()) << towards << ' ' << client_->words();
  }
  for (const char* const towards : {"node8:1", "nobody:1", "127.0.0.2:1", "node7.cluster:1"}) {
    std::tie(client_socket_, server_socket_) = test::pair_of_sockets();
    shake(servers_, clients_, towards);
    expect_complaint(status_server_name, "another host");
  }
}

/// The CN of the subject counts for nothing, and an asterisk for one whole label.
TEST_F(CertificateSession, GoesByAlternativeNamesAlone) {
  shake(authority_.issue("s", {.names = "", .usage = "serverAuth", .common_name = "node7"}),
        clients_);
  expect_complaint(status_server_name, "another host");
  const certificate_terms any{.names = "DNS:*.cluster.lab,DNS:n*.rack.lab", .usage = "serverAuth"};
  std::tie(client_socket_, server_socket_) = test::pair_of_sockets();
  shake(authority_.issue("s", any), clients_, "node7.cluster.lab:1");
  EXPECT_TRUE(both_are_done()) << client_->words();
  std::tie(client_socket_, server_socket_) = test::pair_of_sockets();
  shake(authority_.issue("s", any), clients_, "node7.rack.lab:1");
  expect_complaint(status_server_name, "another host");
}

TEST_F(CertificateSession, RefusesAForeignCa) {
  test_authority other(folder_ / "", "other");
  certificate_files foreign = other.issue("foreign");
  foreign.ca = authority_.ca();
  shake(servers_, foreign);
  expect_refusal("issuer certificate");
  std::tie(client_socket_, server_socket_) = test::pair_of_sockets();
  clients_.ca = other.ca();
  shake(servers_, clients_);
  expect_complaint(status_server_issuer, "not from a CA");
}

/// The other CA has the same name, and another key.
TEST_F(CertificateSession, RefusesACaOfTheSameName) {
  std::filesystem::create_directory(folder_ / "there");
  test_authority other(folder_ / "there");
  certificate_files foreign = other.issue("foreign");
  foreign.ca = authority_.ca();
  shake(servers_, foreign);
  EXPECT_EQ(server_state_, shaken::failed);
  EXPECT_EQ(server_->certificate(), "");
}

TEST_F(CertificateSession, RefusesAnExpiredClient) {
  const auto client = context_of(authority_.issue("brief", {.end = 3600}));
  const auto server = context_of(servers_);
  shift_ = 7200;
  shake(*server, *client);
  expect_refusal("certificate has expired");
  EXPECT_THAT(server_->words(), HasSubstr("uri:spiffe://cluster/build"));
}

TEST_F(CertificateSession, TellsAnExpiredServer) {
  certificate_terms brief = of_node7;
  brief.end = 3600;
  const auto server = context_of(authority_.issue("brief", brief));
  const auto client = context_of(clients_);
  shift_ = 7200;
  shake(*server, *client);
  expect_complaint(status_server_expired, "expired");
}

TEST_F(CertificateSession, RefusesAClientWithoutACertificate) {
  server_ = context_of(servers_)->accept();
  std::unique_ptr<SSL_CTX, openssl_release> context(SSL_CTX_new(TLS_client_method()));
  SSL_CTX_set_alpn_protos(context.get(), alpn_name.data(), alpn_name.size());
  std::unique_ptr<SSL, openssl_release> other(SSL_new(context.get()));
  SSL_set_fd(other.get(), client_socket_.get());
  SSL_set_connect_state(other.get());
  for (int steps = 0; steps < 10 && server_state_ == shaken::going_on; ++steps) {
    SSL_do_handshake(other.get());
    server_state_ = server_->shake(server_socket_.get());
  }
  ERR_clear_error();
  EXPECT_EQ(server_state_, shaken::failed);
  EXPECT_THAT(server_->words(), HasSubstr("did not return a certificate"));
}

TEST_F(CertificateSession, RefusesWhatWasRevoked) {
  authority_.revoke(clients_);
  servers_.crl = clients_.crl = authority_.write_crl();
  shake(servers_, clients_);
  expect_refusal("certificate revoked");
  authority_.revoke(servers_);
  authority_.write_crl();
  std::tie(client_socket_, server_socket_) = test::pair_of_sockets();
  shake(servers_, clients_);
  expect_complaint(status_server_revoked, "revoked");
}

/// An old list says nothing of who was revoked since.
TEST_F(CertificateSession, TrustsNobodyByAnOldList) {
  clients_.crl = authority_.write_crl(3600);
  const auto server = context_of(servers_);
  const auto client = context_of(clients_);
  shake(*server, *client);
  EXPECT_TRUE(both_are_done()) << client_->words();
  shift_ = 7200;
  std::tie(client_socket_, server_socket_) = test::pair_of_sockets();
  shake(*server, *client);
  expect_complaint(status_no_crl, "revocation lists");
}

TEST_F(CertificateSession, IsForOneUse) {
  shake(servers_, authority_.issue("c", {.usage = "serverAuth"}));
  expect_refusal("extended key usage");
  std::tie(client_socket_, server_socket_) = test::pair_of_sockets();
  shake(servers_, authority_.issue("c", {.usage = ""}));
  expect_refusal("extended key usage");
  for (const char* const usage : {"clientAuth", ""}) {
    std::tie(client_socket_, server_socket_) = test::pair_of_sockets();
    shake(authority_.issue("s", {.names = of_node7.names, .usage = usage}), clients_);
    expect_complaint(status_server_use, "serverAuth");
  }
}

TEST_F(CertificateSession, KnowsTheFirstNameOfTheFirstKind) {
  const std::array<std::pair<const char*, const char*>, 4> cases{{
      {"DNS:Node9.Cluster,URI:spiffe://b/c,email:a@b", "uri:spiffe://b/c"},
      {"email:a@b,DNS:Node9.Cluster,DNS:z", "dns:node9.cluster"},
      {"IP:10.0.0.1,email:Ann@Example.org", "email:Ann@Example.org"},
      {"URI:spiffe://b/1,URI:spiffe://b/2", "uri:spiffe://b/1"},
  }};
  for (const auto& [names, known] : cases) {
    std::tie(client_socket_, server_socket_) = test::pair_of_sockets();
    shake(servers_, authority_.issue("c", {.names = names}));
    EXPECT_EQ(server_->certificate(), known) << server_->words();
  }
}

TEST_F(CertificateSession, RefusesOneWithoutANameThatRulesCanHave) {
  for (const char* const names : {"", "IP:127.0.0.1", "DNS:*.cluster", "DNS:a b", "URI:\"x",
                                  "RID:1.2.3.4", "DNS:a\\b,email:a@b"}) {
    std::tie(client_socket_, server_socket_) = test::pair_of_sockets();
    shake(servers_, authority_.issue("c", {.names = names}));
    expect_refusal("it has no URI, DNS name or e-mail address");
  }
}

/// Each reader has to see the same name, or none.
TEST_F(CertificateSession, RefusesNamesThatAreReadInTwoWays) {
  for (const char* const names : {"", "URI:spiffe://cluster/a"}) {
    certificate_terms terms{.names = names};
    terms.raw_uri = names[0] == '\0' ? std::string("spiffe://cluster/build\0x", 24) : "b:c";
    std::tie(client_socket_, server_socket_) = test::pair_of_sockets();
    shake(servers_, authority_.issue("c", terms));
    EXPECT_EQ(server_state_, shaken::failed);
    EXPECT_EQ(server_->certificate(), "");
  }
}

TEST_F(CertificateSession, TakesAChainThatEndsAtItsRoot) {
  test_authority middle(folder_ / "", "middle", &authority_);
  certificate_files below = middle.issue("below");
  shake(servers_, below);
  ASSERT_TRUE(both_are_done()) << server_->words();
  EXPECT_EQ(server_->certificate(), "uri:spiffe://cluster/build");
  std::tie(client_socket_, server_socket_) = test::pair_of_sockets();
  servers_.ca = middle.ca();  // which is no root
  shake(servers_, below);
  expect_refusal("unable to get");
}

/// Its certificate is good, and says that it is none of a CA.
TEST_F(CertificateSession, RefusesWhatIsIssuedByNoCa) {
  test_authority forger(folder_ / "", "forger", &authority_, false);
  shake(servers_, forger.issue("forged"));
  expect_refusal("invalid CA certificate");
}

TEST_F(CertificateSession, NeedsAListOfEachCa) {
  test_authority middle(folder_ / "", "middle", &authority_);
  const certificate_files below = middle.issue("below");
  servers_.crl = authority_.write_crl();
  shake(servers_, below);
  expect_refusal("unable to get certificate CRL");
  std::ofstream(servers_.crl, std::ios::app) << test::content_of(middle.write_crl());
  std::tie(client_socket_, server_socket_) = test::pair_of_sockets();
  shake(servers_, below);
  EXPECT_TRUE(both_are_done()) << server_->words();
}

TEST_F(CertificateSession, EndsWhenACaBetweenExpires) {
  test_authority middle(folder_ / "", "middle", &authority_, true, 3600);
  shake(servers_, middle.issue("below"));
  ASSERT_TRUE(both_are_done()) << server_->words();
  EXPECT_EQ(server_->certificate_fault(), nullptr);
  shift_ = 7200;
  EXPECT_STREQ(server_->certificate_fault(), "certificate has expired");
}

/// A certificate is no secret, and its key is.
TEST_F(CertificateSession, RefusesAStolenCertificate) {
  test_authority(folder_ / "", "thief").forge_key(clients_);
  shake(servers_, clients_);
  EXPECT_EQ(server_state_, shaken::failed);
  EXPECT_THAT(server_->words(), HasSubstr("bad signature"));
}

TEST_F(CertificateSession, LetsTokensInBesideCertificates) {
  const std::string text = token_file(folder_ / "tokens").create("alice");
  token_file(folder_ / "uses").add("node7", text);
  server_context_ = context_of(servers_, "tokens");
  client_context_ = context_of(clients_, "uses");  // a line for the server comes first
  shake(*server_context_, *client_context_);
  ASSERT_TRUE(both_are_done()) << server_->words();
  EXPECT_EQ(server_->peer(), "alice");
  EXPECT_EQ(server_->certificate(), "");
  EXPECT_EQ(server_->certificate_fault(), nullptr);
  EXPECT_FALSE(server_->certificate_time());
  std::tie(client_socket_, server_socket_) = test::pair_of_sockets();
  shake(*server_context_, *context_of(clients_));
  ASSERT_TRUE(both_are_done()) << server_->words();
  EXPECT_EQ(server_->certificate(), "uri:spiffe://cluster/build");
  EXPECT_EQ(server_->peer(), "");
}

TEST_F(CertificateSession, RefusesAWrongTokenBesideCertificates) {
  token_file(folder_ / "tokens").create("alice");
  token_file(folder_ / "others").create("own");
  server_context_ = context_of(servers_, "tokens");
  client_context_ = context_of({}, "others");
  shake(*server_context_, *client_context_);
  EXPECT_EQ(server_state_, shaken::failed);
  EXPECT_EQ(client_state_, shaken::failed);
  EXPECT_EQ(client_->why(), status_token_refused);
}

TEST_F(CertificateSession, IsRefusedByAServerOfTokens) {
  token_file(folder_ / "tokens").create("alice");
  server_context_ = context_of({}, "tokens");
  client_context_ = context_of(clients_);
  shake(*server_context_, *client_context_);
  EXPECT_EQ(server_state_, shaken::failed);
  EXPECT_EQ(client_state_, shaken::failed);
  EXPECT_EQ(client_->why(), status_certificate_refused);
}

TEST_F(CertificateSession, IsRefusedWhereAKeyOfAMeetingIsExpected) {
  server_context_ = context_of(servers_);
  client_context_ = context_of(clients_);
  server_ = server_context_->accept(std::make_shared<meeting_book>());
  client_ = client_context_->connect("node7:7471");
  shake_on();
  EXPECT_EQ(server_state_, shaken::failed);
  EXPECT_EQ(client_->why(), status_certificate_refused);
}

/// A server that ends in that moment refuses nobody: the client may try again.
TEST_F(CertificateSession, IsNotRefusedByAnEndWithoutAWord) {
  shake(servers_, clients_);
  ASSERT_TRUE(both_are_done()) << server_->words();
  server_socket_ = owned_descriptor();
  std::byte one = {};
  const ::iovec part{&one, 1};
  EXPECT_EQ(client_->read(client_socket_.get(), {&part, 1}, scratch_), -1);
  EXPECT_EQ(client_->why(), UCS_OK);
}

TEST_F(CertificateSession, EndsWhenItExpires) {
  const auto brief = authority_.issue("brief", {.end = 3600});
  shake(servers_, brief);
  ASSERT_TRUE(both_are_done()) << server_->words();
  EXPECT_EQ(server_->certificate_fault(), nullptr);
  EXPECT_EQ(server_->certificate_time(), std::chrono::seconds(60));  // the clock may be set
  shift_ = 7200;
  EXPECT_STREQ(server_->certificate_fault(), "certificate has expired");
  EXPECT_EQ(server_->certificate_time(), std::chrono::seconds(0));
  EXPECT_EQ(client_->certificate_fault(), nullptr);
  shift_ = 90'000;
  EXPECT_STREQ(client_->certificate_fault(), "certificate has expired");
}

TEST_F(CertificateSession, EndsWhenItIsRevoked) {
  servers_.crl = authority_.write_crl();
  shake(servers_, clients_);
  ASSERT_TRUE(both_are_done()) << server_->words();
  const std::uint64_t version = server_context_->version();
  ASSERT_TRUE(server_context_->reload_certificates());
  EXPECT_GT(server_context_->version(), version);
  EXPECT_EQ(server_->certificate_fault(), nullptr);
  authority_.revoke(clients_);
  authority_.write_crl();
  ASSERT_TRUE(server_context_->reload_certificates());
  EXPECT_STREQ(server_->certificate_fault(), "certificate revoked");
}

/// Both reads are of one order: the list that was read last counts.
TEST_F(CertificateSession, IsReadAgainByOneThreadAtATime) {
  servers_.crl = authority_.write_crl();
  shake(servers_, clients_);
  ASSERT_TRUE(both_are_done()) << server_->words();
  std::jthread other([this] {
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(server_context_->reload_certificates());
  });
  authority_.revoke(clients_);
  authority_.write_crl();
  EXPECT_TRUE(server_context_->reload_certificates());
  EXPECT_STREQ(server_->certificate_fault(), "certificate revoked");
}

TEST_F(CertificateSession, RevokesWhereItsOwnFilesAreWrong) {
  certificate_terms brief = of_node7;
  brief.end = 3600;
  servers_ = authority_.issue("brief", brief);
  servers_.crl = authority_.write_crl();
  server_context_ = context_of(servers_);
  client_context_ = context_of(clients_);
  shake(*server_context_, *client_context_);
  ASSERT_TRUE(both_are_done()) << server_->words();
  shift_ = 7200;
  authority_.revoke(clients_);
  authority_.write_crl();
  const auto read = server_context_->reload_certificates();
  ASSERT_FALSE(read);
  EXPECT_EQ(read.why().code, errc::not_secure);
  EXPECT_THAT(read.why().text, HasSubstr("own certificate stays as it was"));
  EXPECT_STREQ(server_->certificate_fault(), "certificate revoked");
  shift_ = 0;
  write("brief.crt", "garbage", 0644);
  EXPECT_EQ(server_context_->reload_certificates().why().code, errc::bad_configuration);
  std::tie(client_socket_, server_socket_) = test::pair_of_sockets();
  shake(*server_context_, *context_of(authority_.issue("other")));
  EXPECT_TRUE(both_are_done()) << server_->words();
}

TEST_F(CertificateSession, EndsWithoutItsCa) {
  shake(servers_, clients_);
  ASSERT_TRUE(both_are_done()) << server_->words();
  test_authority other(folder_ / "", "other");
  std::filesystem::rename(other.ca(), authority_.ca());
  ASSERT_TRUE(server_context_->reload_certificates());
  EXPECT_NE(server_->certificate_fault(), nullptr);
}

TEST_F(CertificateSession, StaysAsItWasWhereAFileIsWrong) {
  shake(servers_, clients_);
  ASSERT_TRUE(both_are_done()) << server_->words();
  const std::uint64_t version = server_context_->version();
  write("ca.pem", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", 0644);
  const auto read = server_context_->reload_certificates();
  ASSERT_FALSE(read);
  EXPECT_EQ(read.why().code, errc::bad_configuration);
  EXPECT_THAT(read.why().text, HasSubstr("ca.pem"));
  EXPECT_EQ(server_context_->version(), version);
  EXPECT_EQ(server_->certificate_fault(), nullptr);
  std::tie(client_socket_, server_socket_) = test::pair_of_sockets();
  shake(*server_context_, *client_context_);
  EXPECT_TRUE(both_are_done()) << server_->words();
}

TEST_F(CertificateSession, NeedsAKeyOfItsOwn) {
  std::string words;
  certificate_files mixed = servers_;
  mixed.key = clients_.key;
  EXPECT_EQ(fault_of(mixed, words), errc::bad_configuration);
  EXPECT_THAT(words, HasSubstr("does not belong to the certificate"));
  ::chmod(servers_.key.c_str(), 0640);
  EXPECT_EQ(fault_of(servers_, words), errc::not_secure);
  EXPECT_THAT(words, HasSubstr("chmod 600"));
  ::chmod(clients_.ca.c_str(), 0664);
  EXPECT_EQ(fault_of(clients_, words), errc::not_secure);
  EXPECT_THAT(words, HasSubstr("chmod go-w"));
}

/// Others could put a file in it that is trusted elsewhere.
TEST_F(CertificateSession, NeedsAFolderOfItsOwn) {
  std::string words;
  const std::filesystem::path open = folder_ / "open";
  std::filesystem::create_directory(open);
  std::filesystem::copy_file(clients_.ca, open / "ca.pem");
  std::filesystem::create_symlink(open / "ca.pem", folder_ / "link.pem");
  for (const std::filesystem::path& each : {open / "ca.pem", folder_ / "link.pem"}) {
    clients_.ca = each;
    ::chmod(open.c_str(), 0777);
    EXPECT_EQ(fault_of(clients_, words), errc::not_secure);
    EXPECT_THAT(words, HasSubstr("in the folder"));
    ::chmod(open.c_str(), 01777);
    EXPECT_FALSE(fault_of(clients_, words)) << words;
  }
}

TEST_F(CertificateSession, SaysWhatIsWrongWithItsFiles) {
  std::string words;
  EXPECT_EQ(fault_of(authority_.issue("old", {.begin = -7200, .end = -3600}), words),
            errc::not_secure);
  EXPECT_THAT(words, HasSubstr("has expired"));
  EXPECT_EQ(fault_of(authority_.issue("new", {.begin = 3600}), words), errc::not_secure);
  EXPECT_THAT(words, HasSubstr("not valid yet"));
  certificate_files partly = clients_;
  partly.ca.clear();
  EXPECT_EQ(fault_of(partly, words), errc::bad_configuration);
  EXPECT_THAT(words, HasSubstr("--ca"));
  partly.ca = folder_ / "missing";
  EXPECT_EQ(fault_of(partly, words), errc::no_such_name);
  EXPECT_THAT(words, HasSubstr("missing"));
  for (const char* const text : {"", "garbage", "-----BEGIN CERTIFICATE-----\n!\n"}) {
    write("garbage", text, 0600);
    for (std::filesystem::path certificate_files::*const which :
         {&certificate_files::cert, &certificate_files::key, &certificate_files::ca,
          &certificate_files::crl}) {
      certificate_files wrong = clients_;
      wrong.*which = folder_ / "garbage";
      EXPECT_EQ(fault_of(wrong, words), errc::bad_configuration) << text;
      EXPECT_THAT(words, HasSubstr("garbage"));
    }
  }
}

TEST_F(CertificateSession, TakesItsFilesFromTheEnvironment) {
  const test::changed_variable cert("UCXIO_CERT", clients_.cert.c_str());
  const test::changed_variable key("UCXIO_KEY", clients_.key.c_str());
  const test::changed_variable ca("UCXIO_CA", clients_.ca.c_str());
  EXPECT_EQ(named_certificates({}).key.string(), clients_.key.string());
  EXPECT_TRUE(named_certificates({}).crl.empty());
  EXPECT_EQ(named_certificates(servers_).key.string(),
            servers_.key.string());  // options come first, and alone
}

TEST(CertificateName, IsPlainTextWithItsKind) {
  for (const char* const name : {"uri:spiffe://a/b", "dns:node7", "email:a@b.c"}) {
    EXPECT_EQ(complaint_about_certificate_name(name), "") << name;
  }
  for (const char* const name : {"", "node7", "ip:1", "uri:", "dns:a b", "dns:*", "email:\"a\"@b",
                                 "uri:\xc3\xa4", "DNS:a", "dns:a\\b", "uri:a\n"}) {
    EXPECT_NE(complaint_about_certificate_name(name), "") << name;
  }
  EXPECT_NE(complaint_about_certificate_name("uri:" + std::string(600, 'a')), "");
  EXPECT_EQ(comparable_certificate_name("dns:Node7"), "dns:node7");
  EXPECT_EQ(comparable_certificate_name("uri:A"), "uri:A");
}

}  // namespace
}  // namespace ucx::detail
