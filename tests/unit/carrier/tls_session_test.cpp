// TLS between two sessions, and between one and a program of OpenSSL's.
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/logger.hpp"
#include "base/owned_descriptor.hpp"
#include "carrier/carrier_failure.hpp"
#include "carrier/tls_keys.hpp"
#include "carrier/tls_openssl.hpp"
#include "support/basics/changed_variable.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/replaced/failing_calls.hpp"
#include "ucx/error.hpp"
#include "ucx/token_file.hpp"
#include "unit/carrier/bare_peer.hpp"
#include "wire/wire.hpp"

namespace ucx::detail {
namespace {

using testing::HasSubstr;

using bytes = std::vector<std::byte>;

bytes bytes_of(std::string_view text) {
  const auto all = std::as_bytes(std::span(text));
  return {all.begin(), all.end()};
}

bool holds(const bytes& all, std::span<const std::byte> part) {
  return std::search(all.begin(), all.end(), part.begin(), part.end()) != all.end();
}

/// Two sides with a file of tokens each; a token is in one line of both.
class TlsSession : public testing::Test {
 protected:
  static constexpr const char* towards = "node7:7471";

  TlsSession() {
    token_file servers(folder_ / "servers");
    token_ = servers.create("alice");
    token_file(folder_ / "clients").add("node7", token_);
    std::tie(client_socket_, server_socket_) = test::pair_of_sockets();
  }

  std::shared_ptr<tls_context> context_of(const std::string& file,
                                          std::uint64_t records_per_key = 1U << 22U) {
    auto made =
        make_tls({.tokens = folder_ / file, .log = log_.get(), .records_per_key = records_per_key});
    if (!made) throw std::runtime_error(made.why().text);
    return *std::move(made);
  }
  /// Makes both sessions, and lets them shake hands.
  void join(std::uint64_t records_per_key = 1U << 22U) {
    server_ = context_of("servers", records_per_key)->accept();
    client_ = context_of("clients", records_per_key)->connect(towards);
    shake();
    ASSERT_EQ(client_state_, tls_session::handshake::done);
    ASSERT_EQ(server_state_, tls_session::handshake::done);
  }
  void shake() {
    const auto going_on = tls_session::handshake::going_on;
    for (int steps = 0; steps < 10; ++steps) {
      if (client_state_ == going_on) client_state_ = client_->shake(client_socket_.get());
      if (server_state_ == going_on) server_state_ = server_->shake(server_socket_.get());
    }
  }
  /// A server's session hears these bytes, and answers.
  bytes answer_to(std::span<const std::byte> said) {
    server_ = context_of("servers")->accept();
    EXPECT_EQ(::send(client_socket_.get(), said.data(), said.size(), 0),
              static_cast<::ssize_t>(said.size()));
    server_state_ = server_->shake(server_socket_.get());
    return raw(client_socket_);
  }
  /// What has come and was not read by a session.
  static bytes raw(const owned_descriptor& at) {
    bytes came(1U << 16U);
    const ::ssize_t read = ::recv(at.get(), came.data(), came.size(), MSG_DONTWAIT);
    came.resize(read > 0 ? static_cast<std::size_t>(read) : 0);
    return came;
  }
  ::ssize_t write(tls_session& by, const owned_descriptor& at, std::span<const std::byte> said) {
    const ::iovec part{const_cast<std::byte*>(said.data()), said.size()};
    return by.write(at.get(), {&part, 1}, scratch_);
  }
  ::ssize_t read(tls_session& by, const owned_descriptor& at, std::span<std::byte> into) {
    const ::iovec part{into.data(), into.size()};
    return by.read(at.get(), {&part, 1}, scratch_);
  }

  test::temporary_directory folder_;
  std::unique_ptr<logger> log_ = *logger::make({}, "test");
  std::string token_;
  owned_descriptor client_socket_;
  owned_descriptor server_socket_;
  std::unique_ptr<tls_session> client_;
  std::unique_ptr<tls_session> server_;
  tls_session::handshake client_state_ = tls_session::handshake::going_on;
  tls_session::handshake server_state_ = tls_session::handshake::going_on;
  bytes scratch_ = bytes(tls_context::scratch_size);
};

TEST(TlsKeys, AreTheSameInEveryVersion) {
  std::array<std::byte, token_size> secret = {};
  for (std::size_t i = 0; i < secret.size(); ++i) secret[i] = static_cast<std::byte>(i + 1);
  std::array<std::byte, 8> key = {};
  ASSERT_TRUE(derive(secret, "ucxs/1 psk of a client towards its server", key));
  EXPECT_EQ(take_at<std::uint64_t>(key, 0), 0xe9d7638b260ee25cU);
}

TEST_F(TlsSession, KnowsTheNamesOfTheToken) {
  join();
  EXPECT_EQ(server_->peer(), "alice");
  EXPECT_EQ(client_->peer(), "node7");
}

TEST_F(TlsSession, HasTheKeyOfAMeetingUntilItWasShown) {
  const auto book = std::make_shared<meeting_book>();
  const meeting_secret key = secret_of(bytes(16)).value();
  book->expect(key, std::chrono::steady_clock::now() + std::chrono::hours(1));
  server_ = context_of("servers")->accept(book);
  client_ = context_of("clients")->meet(key);
  const auto& asking = dynamic_cast<const openssl_session&>(*client_);
  EXPECT_TRUE(asking.has_key());
  shake();
  EXPECT_EQ(server_state_, tls_session::handshake::done);
  EXPECT_FALSE(asking.has_key());
  EXPECT_TRUE(server_->has_met());
  EXPECT_TRUE(server_->is_accepted());
}

TEST_F(TlsSession, MovesBytesInManyParts) {
  join();
  bytes said(std::size_t{3} << 20U);
  for (std::size_t i = 0; i < said.size(); ++i) said[i] = static_cast<std::byte>(i * 7 + i / 251);
  std::array<std::byte, 8> head = {};
  head.fill(std::byte{0x5a});
  bytes expected(head.begin(), head.end());
  expected.insert(expected.end(), said.begin(), said.end());
  bytes heard;
  bytes first(5);
  bytes second(100'000);
  std::size_t sent = 0;
  for (int steps = 0; heard.size() < expected.size() && steps < 100'000; ++steps) {
    std::vector<::iovec> parts;
    if (sent < head.size()) parts.push_back({head.data() + sent, head.size() - sent});
    const std::size_t gone = sent < head.size() ? 0 : sent - head.size();
    parts.push_back({said.data() + gone, said.size() - gone});
    const ::ssize_t written = client_->write(client_socket_.get(), parts, scratch_);
    if (written < 0) {
      ASSERT_EQ(errno, EAGAIN);
    }
    if (written > 0) sent += static_cast<std::size_t>(written);
    const std::array<::iovec, 2> into{
        {{first.data(), first.size()}, {second.data(), second.size()}}};
    const ::ssize_t read = server_->read(server_socket_.get(), into, scratch_);
    if (read < 0) {
      ASSERT_EQ(errno, EAGAIN);
      continue;
    }
    const auto came = static_cast<std::size_t>(read);
    const std::size_t of_first = std::min(came, first.size());
    heard.insert(heard.end(), first.begin(), first.begin() + static_cast<std::ptrdiff_t>(of_first));
    heard.insert(heard.end(), second.begin(),
                 second.begin() + static_cast<std::ptrdiff_t>(came - of_first));
  }
  EXPECT_TRUE(heard == expected);
  EXPECT_FALSE(client_->has_unsent());
}

TEST_F(TlsSession, TellsThatItHasMoreThanWasTaken) {
  join();
  ASSERT_EQ(write(*client_, client_socket_, bytes_of("0123456789")), 10);
  bytes into(4);
  ASSERT_EQ(read(*server_, server_socket_, into), 4);
  EXPECT_TRUE(server_->may_have_more());
  ASSERT_EQ(read(*server_, server_socket_, into), 4);
  ASSERT_EQ(read(*server_, server_socket_, into), 2);
  EXPECT_EQ(read(*server_, server_socket_, into), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_FALSE(server_->may_have_more());
}

TEST_F(TlsSession, KeepsWhatWasSentWithTheEndOfTheHandshake) {
  server_ = context_of("servers")->accept();
  client_ = context_of("clients")->connect(towards);
  client_state_ = client_->shake(client_socket_.get());
  server_state_ = server_->shake(server_socket_.get());
  client_state_ = client_->shake(client_socket_.get());
  ASSERT_EQ(client_state_, tls_session::handshake::done);
  ASSERT_EQ(write(*client_, client_socket_, bytes_of("early")), 5);
  ASSERT_EQ(server_->shake(server_socket_.get()), tls_session::handshake::done);
  EXPECT_TRUE(server_->may_have_more());
  bytes into(5);
  EXPECT_EQ(read(*server_, server_socket_, into), 5);
  EXPECT_EQ(into, bytes_of("early"));
}

TEST_F(TlsSession, ShowsNothingReadable) {
  server_ = context_of("servers")->accept();
  client_ = context_of("clients")->connect(towards);
  client_state_ = client_->shake(client_socket_.get());
  bytes seen(1U << 14U);
  const ::ssize_t peeked = ::recv(server_socket_.get(), seen.data(), seen.size(), MSG_PEEK);
  ASSERT_GT(peeked, 0);
  seen.resize(static_cast<std::size_t>(peeked));
  // The mode psk_dhe_ke alone (RFC 8446, 4.2.9).
  EXPECT_TRUE(holds(seen, std::as_bytes(std::span("\0\x2d\0\2\1\1", 6))));
  shake();
  ASSERT_EQ(server_state_, tls_session::handshake::done);
  EXPECT_THAT(raw(client_socket_), testing::IsEmpty()) << "tickets";
  const bytes secret = bytes_of("a name that nobody sees");
  ASSERT_GT(write(*client_, client_socket_, secret), 0);
  const bytes wire = raw(server_socket_);
  seen.insert(seen.end(), wire.begin(), wire.end());
  for (const bytes& each : {secret, bytes_of("alice"), bytes_of("node7"), bytes_of("UXSC"),
                            bytes_of(token_.substr(6, 12))}) {
    EXPECT_FALSE(holds(seen, each));
  }
}

TEST_F(TlsSession, ChangesItsKeyAfterSoManyRecords) {
  join(4);
  bytes into(5);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(write(*client_, client_socket_, bytes_of("hello")), 5);
    ASSERT_EQ(read(*server_, server_socket_, into), 5);
    EXPECT_EQ(into, bytes_of("hello"));
  }
  EXPECT_EQ(static_cast<openssl_session&>(*client_).key_changes(), 24U);
  EXPECT_EQ(static_cast<openssl_session&>(*server_).key_changes(), 0U);
  ASSERT_EQ(write(*server_, server_socket_, bytes_of("world")), 5);
  EXPECT_EQ(read(*client_, client_socket_, into), 5);
}

TEST_F(TlsSession, TellsAnEndInGoodFormFromACut) {
  join();
  ASSERT_EQ(write(*client_, client_socket_, bytes_of("last")), 4);
  client_->end(client_socket_.get());
  client_socket_ = owned_descriptor();
  bytes into(16);
  EXPECT_EQ(read(*server_, server_socket_, into), 4);
  EXPECT_EQ(read(*server_, server_socket_, into), 0);
}

TEST_F(TlsSession, IsResetByACut) {
  join();
  ASSERT_EQ(write(*client_, client_socket_, bytes_of("last")), 4);
  ::shutdown(client_socket_.get(), SHUT_RDWR);
  bytes into(16);
  EXPECT_EQ(read(*server_, server_socket_, into), 4);
  EXPECT_EQ(read(*server_, server_socket_, into), -1);
  EXPECT_EQ(errno, ECONNRESET);
}

TEST_F(TlsSession, IsResetByAChangedRecord) {
  join();
  ASSERT_EQ(write(*client_, client_socket_, bytes_of("hello")), 5);
  bytes wire = raw(server_socket_);
  wire.back() ^= std::byte{1};
  ASSERT_EQ(::send(client_socket_.get(), wire.data(), wire.size(), 0),
            static_cast<::ssize_t>(wire.size()));
  bytes into(16);
  EXPECT_EQ(read(*server_, server_socket_, into), -1);
  EXPECT_EQ(errno, ECONNRESET);
}

TEST_F(TlsSession, RefusesATokenThatItDoesNotKnow) {
  token_file(folder_ / "others").create("own");
  server_ = context_of("servers")->accept();
  client_ = context_of("others")->connect(towards);
  shake();
  EXPECT_EQ(server_state_, tls_session::handshake::failed);
  EXPECT_EQ(client_state_, tls_session::handshake::failed);
  EXPECT_EQ(client_->why(), status_token_refused);
  EXPECT_THAT(server_->words(), HasSubstr("not accepted here"));
}

TEST_F(TlsSession, RefusesATokenThatItIsToUseItself) {
  // The connection of a client was led back to a server of its own user.
  token_file(folder_ / "clients").create("bob");
  server_ = context_of("clients")->accept();
  client_ = context_of("clients")->connect(towards);
  shake();
  EXPECT_EQ(client_->peer(), "node7");
  EXPECT_EQ(server_state_, tls_session::handshake::failed);
  EXPECT_EQ(client_->why(), status_token_refused);
}

TEST_F(TlsSession, LooksAtTheFileAgain) {
  const auto servers = context_of("servers");
  const std::string second = token_file(folder_ / "servers").create("bob");
  token_file(folder_ / "servers").remove("alice");
  servers->refresh();
  server_ = servers->accept();
  client_ = context_of("clients")->connect(towards);
  shake();
  EXPECT_EQ(client_->why(), status_token_refused);
  // What can not be read leaves the last one in force.
  ASSERT_EQ(::chmod((folder_ / "servers").c_str(), 0644), 0);
  servers->refresh();
  EXPECT_TRUE(servers->can_accept());
}

/// A name is what rules give rights to.
TEST_F(TlsSession, IsNotAcceptedUnderAnotherName) {
  const auto servers = context_of("servers");
  server_ = servers->accept();
  client_ = context_of("clients")->connect(towards);
  shake();
  ASSERT_EQ(server_state_, tls_session::handshake::done);
  EXPECT_TRUE(server_->is_accepted());
  std::ofstream(folder_ / "servers") << "accept alice2 " << token_ << '\n';
  servers->refresh();
  EXPECT_FALSE(server_->is_accepted());
  std::ofstream(folder_ / "servers") << "accept alice " << token_ << '\n';
  servers->refresh();
  EXPECT_TRUE(server_->is_accepted());
}

/// That is no name for others: clients of this user take such a token for their own.
TEST_F(TlsSession, InvitesNobodyAsItsOwnUser) {
  std::array<std::byte, token_size> code = {};
  EXPECT_EQ(context_of("servers")->invite("own", code).why().code, errc::bad_name);
}

/// A server that invites, and clients that show codes.
class InvitedSession : public TlsSession {
 protected:
  std::shared_ptr<tls_context> inviting(std::chrono::milliseconds longest) {
    auto made =
        make_tls({.tokens = folder_ / "servers", .log = log_.get(), .longest_invitation = longest});
    if (!made) throw std::runtime_error(made.why().text);
    return *std::move(made);
  }
  static std::array<std::byte, token_size> code(int number) {
    std::array<std::byte, token_size> made = {};
    made.fill(static_cast<std::byte>(number));
    return made;
  }
  /// Shakes hands by a code. Returns the session of the server.
  std::unique_ptr<tls_session> shaken(tls_context& server, int number) {
    std::tie(client_socket_, server_socket_) = test::pair_of_sockets();
    const auto asking = std::make_shared<openssl_context>(tls_settings{.log = log_.get()},
                                                          *tls_keys::of_code(code(number)));
    EXPECT_TRUE(asking->open());
    client_state_ = server_state_ = tls_session::handshake::going_on;
    client_ = asking->connect({});
    server_ = server.accept();
    shake();
    return std::move(server_);
  }
  /// Returns how many tokens of that name are in the server's file.
  std::size_t kept(std::string_view name) {
    const auto list = token_file(folder_ / "servers").list();
    return static_cast<std::size_t>(std::count_if(
        list.begin(), list.end(), [&](const auto& each) { return each.name == name; }));
  }
};

TEST_F(InvitedSession, GetsATokenByTheCodeOfOneUse) {
  const auto server = inviting(std::chrono::minutes(10));
  ASSERT_TRUE(server->invite("bob", code(1)));
  // Both have shown the code before either gets a token.
  const auto first = shaken(*server, 1);
  ASSERT_EQ(server_state_, tls_session::handshake::done);
  const auto second = shaken(*server, 1);
  ASSERT_EQ(server_state_, tls_session::handshake::done);
  EXPECT_TRUE(first->is_invited());
  EXPECT_EQ(first->peer(), "") << "it is no token";
  EXPECT_EQ(first->redeem(), tls_session::handshake::done);
  EXPECT_EQ(second->redeem(), tls_session::handshake::failed);
  EXPECT_THAT(second->words(), HasSubstr("counts no more"));
  EXPECT_EQ(kept("bob"), 1U);
}

TEST_F(InvitedSession, GetsNoTokenOfALaterInvitation) {
  const auto server = inviting(std::chrono::minutes(10));
  ASSERT_TRUE(server->invite("bob", code(1)));
  const auto stalled = shaken(*server, 1);
  ASSERT_EQ(server_state_, tls_session::handshake::done);
  ASSERT_TRUE(server->invite("carol", code(2)));
  EXPECT_EQ(stalled->redeem(), tls_session::handshake::failed);
  EXPECT_EQ(kept("carol"), 0U);
  EXPECT_EQ(shaken(*server, 2)->redeem(), tls_session::handshake::done) << "it still counts";
  EXPECT_EQ(kept("carol"), 1U);
  EXPECT_EQ(kept("bob"), 0U);
}

TEST_F(InvitedSession, IsRefusedWhereItsTokenCanNotBeKept) {
  const auto server = inviting(std::chrono::minutes(10));
  ASSERT_TRUE(server->invite("bob", code(1)));
  const auto invited = shaken(*server, 1);
  ASSERT_EQ(server_state_, tls_session::handshake::done);
  const test::failing_calls failing(test::disk_call::fsync, ENOSPC);
  EXPECT_EQ(invited->redeem(), tls_session::handshake::failed);
  EXPECT_THAT(invited->words(), HasSubstr("could not be kept"));
  EXPECT_EQ(kept("bob"), 0U);
}

TEST_F(InvitedSession, IsUnknownOnceItsTimeIsOver) {
  const auto server = inviting(std::chrono::milliseconds(0));
  ASSERT_TRUE(server->invite("bob", code(1)));
  const auto late = shaken(*server, 1);
  EXPECT_EQ(server_state_, tls_session::handshake::failed);
  EXPECT_FALSE(late->is_invited());
  EXPECT_EQ(client_->why(), status_token_refused);
}

TEST_F(TlsSession, ChoosesTheTokenOfTheServer) {
  token_file file(folder_ / "clients");
  const auto used_towards = [&](const std::string& server) {
    const auto keys = tls_keys::make({.tokens = folder_ / "clients"});
    const tls_keys::key* const used = keys ? (*keys)->used(server) : nullptr;
    return used != nullptr ? used->name : "none";
  };
  EXPECT_EQ(used_towards("node7:7471"), "node7");
  EXPECT_EQ(used_towards("elsewhere:1"), "none") << "it is of another server";
  file.add("node7:7472", token_);
  EXPECT_EQ(used_towards("node7:7471"), "node7");
  EXPECT_EQ(used_towards("node7:7472"), "node7:7472");
  // Whoever got such a token could play the server.
  file.create("alice");
  EXPECT_EQ(used_towards("elsewhere:1"), "none");
  file.create("own");
  EXPECT_EQ(used_towards("elsewhere:1"), "own");
  EXPECT_EQ(used_towards("node7:7473"), "node7");
  file.add("own", token_);
  file.remove("own");
  file.add("own", token_);
  EXPECT_EQ(used_towards("elsewhere:1"), "none") << "a server that has this name";
}

/// As a client that knows that a process of another user listens at the port.
TEST_F(TlsSession, TakesATokenForJustThisPortTowardsAStranger) {
  token_file file(folder_ / "clients");
  file.create("own");
  const auto check = [&](const std::string& server) {
    return context_of("clients")->check_user(server, "another user is there");
  };
  for (const char* const server : {"node7:7471", "node8:7471"}) {
    const auto refused = check(server);
    ASSERT_FALSE(refused) << server;
    EXPECT_EQ(refused.why().code, errc::not_secure);
    EXPECT_THAT(refused.why().text, HasSubstr("another user is there"));
    EXPECT_THAT(refused.why().text, HasSubstr(std::string("ucxio token add ") + server));
    EXPECT_TRUE(context_of("clients")->check_user(server, "")) << "nobody else is there";
  }
  file.add("node7:7471", token_);
  EXPECT_TRUE(check("node7:7471"));
  EXPECT_FALSE(check("node8:7471"));
}

TEST_F(TlsSession, TakesATokenOfTheEnvironment) {
  const test::changed_variable home("XDG_CONFIG_HOME", (folder_ / "none").c_str());
  const test::changed_variable token("UCXIO_TOKEN", nullptr);
  auto none = make_tls({.log = log_.get()});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.why().code, errc::permission_denied);
  EXPECT_THAT(none.why().text, HasSubstr("ucxio token new"));
  ::setenv("UCXIO_TOKEN", token_.c_str(), 1);
  EXPECT_TRUE(make_tls({.log = log_.get()}));
  ::setenv("UCXIO_TOKEN", token_.substr(1).c_str(), 1);
  const auto damaged = make_tls({.log = log_.get()});
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.why().code, errc::bad_configuration);
  EXPECT_EQ(damaged.why().text.find(token_.substr(6, 12)), std::string::npos);
}

// What other programs do.

TEST_F(TlsSession, AnswersOtherProgramsNothing) {
  for (const std::string_view said :
       {std::string_view("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
        std::string_view("SSH-2.0-OpenSSH_9.2\r\n"), std::string_view("\0\0\0\0\0\0\0\0\0", 9)}) {
    EXPECT_THAT(answer_to(bytes_of(said)), testing::IsEmpty()) << said;
    EXPECT_EQ(server_state_, tls_session::handshake::failed) << said;
  }
}

/// OpenSSL alone would wait for all of such a hello, which has 120,000 bytes.
TEST_F(TlsSession, EndsWithOneWhoDoesNotComeToAnEnd) {
  server_ = context_of("servers")->accept();
  bytes record = bytes_of(std::string("\x16\3\1\x10\0", 5));  // with 4096 bytes
  bytes said = bytes_of(std::string("\1\1\xd4\xc0", 4));
  said.resize(4096);
  std::size_t sent = 0;
  while (server_state_ == tls_session::handshake::going_on && sent < 120'000) {
    for (const bytes& each : {record, said}) {
      ASSERT_EQ(::send(client_socket_.get(), each.data(), each.size(), 0),
                static_cast<::ssize_t>(each.size()));
      sent += each.size();
    }
    said.assign(4096, std::byte{0});
    server_state_ = server_->shake(server_socket_.get());
  }
  EXPECT_EQ(server_state_, tls_session::handshake::failed);
  EXPECT_THAT(server_->words(), HasSubstr("too long"));
  EXPECT_GT(sent, std::size_t{16} << 10U);
  EXPECT_LT(sent, std::size_t{24} << 10U);
}

/// A client or server of OpenSSL's, over memory.
class foreign_tls {
 public:
  explicit foreign_tls(const SSL_METHOD* method) : context_(SSL_CTX_new(method)) {}
  SSL_CTX* context() const { return context_.get(); }
  void begin(bool connects) {
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_app_data(ssl_.get(), this);
    SSL_set_bio(ssl_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    if (connects) {
      SSL_set_connect_state(ssl_.get());
    } else {
      SSL_set_accept_state(ssl_.get());
    }
  }
  bool step(const bytes& heard, bytes& said) {
    if (!heard.empty()) {
      BIO_write(SSL_get_rbio(ssl_.get()), heard.data(), static_cast<int>(heard.size()));
    }
    const int done = SSL_do_handshake(ssl_.get());
    ERR_clear_error();
    said.resize(1U << 14U);
    const int size = BIO_read(SSL_get_wbio(ssl_.get()), said.data(), static_cast<int>(said.size()));
    said.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    return done == 1;
  }

  std::array<unsigned char, 16> identity = {};
  std::array<unsigned char, 32> key = {};
  /// Shows `identity` and `key`.
  void use_key() { SSL_CTX_set_psk_use_session_callback(context_.get(), &use); }

 private:
  static int use(SSL* ssl, const EVP_MD*, const unsigned char** identity, std::size_t* size,
                 SSL_SESSION** made) {
    auto& self = *static_cast<foreign_tls*>(SSL_get_app_data(ssl));
    constexpr std::array<unsigned char, 2> cipher{0x13, 0x01};
    *made = SSL_SESSION_new();
    SSL_SESSION_set1_master_key(*made, self.key.data(), self.key.size());
    SSL_SESSION_set_cipher(*made, SSL_CIPHER_find(ssl, cipher.data()));
    SSL_SESSION_set_protocol_version(*made, TLS1_3_VERSION);
    *identity = self.identity.data();
    *size = self.identity.size();
    return 1;
  }

  std::unique_ptr<SSL_CTX, openssl_release> context_;
  std::unique_ptr<SSL, openssl_release> ssl_;
};

class ForeignClient : public TlsSession {
 protected:
  ForeignClient() { SSL_CTX_set_alpn_protos(other_.context(), alpn_name.data(), 7); }
  bytes answer() {
    other_.begin(true);
    bytes hello;
    other_.step({}, hello);
    return answer_to(hello);
  }
  static bytes alert(int number) {
    return bytes_of(std::string("\x15\3\3\0\2\2", 6) + static_cast<char>(number));
  }
  tls_keys::key key_of_alice() { return *(*keys_)->accepted(identity_of_alice()); }
  void show_key_of_alice() {
    const tls_keys::key alice = key_of_alice();
    std::memcpy(other_.identity.data(), alice.identity.data(), alice.identity.size());
    std::memcpy(other_.key.data(), alice.secret.data(), alice.secret.size());
    other_.use_key();
  }
  std::span<const std::byte> identity_of_alice() {
    std::array<std::byte, token_size> secret = {};
    EXPECT_EQ(read_token(token_, secret), token_verdict::intact);
    EXPECT_TRUE(derive(secret, "ucxs/1 identity of a client towards its server", identity_));
    return identity_;
  }

  foreign_tls other_{TLS_client_method()};
  result<std::shared_ptr<const tls_keys>> keys_ = tls_keys::make({.tokens = folder_ / "servers"});
  std::array<std::byte, tls_keys::identity_size> identity_ = {};
};

TEST_F(ForeignClient, IsAcceptedWithTheKey) {
  show_key_of_alice();
  const bytes hello = answer();
  EXPECT_EQ(server_state_, tls_session::handshake::going_on);
  bytes finished;
  EXPECT_TRUE(other_.step(hello, finished));
}

TEST_F(ForeignClient, IsToldTheSameOfAWrongKeyAndOfAnUnknownName) {
  other_.use_key();
  const bytes unknown = answer();
  EXPECT_EQ(server_state_, tls_session::handshake::failed);
  EXPECT_FALSE(unknown.empty());
  const tls_keys::key alice = key_of_alice();
  std::memcpy(other_.identity.data(), alice.identity.data(), alice.identity.size());
  EXPECT_EQ(answer(), unknown);
  EXPECT_EQ(server_state_, tls_session::handshake::failed);
  EXPECT_THAT(server_->words(), HasSubstr("alice"));
}

TEST_F(ForeignClient, IsRefusedWithoutAKey) {
  EXPECT_EQ(answer(), alert(SSL_AD_HANDSHAKE_FAILURE));
  EXPECT_EQ(server_state_, tls_session::handshake::failed);
}

TEST_F(ForeignClient, IsRefusedWithAnotherProtocol) {
  show_key_of_alice();
  SSL_CTX_set_alpn_protos(other_.context(), reinterpret_cast<const unsigned char*>("\2h2"), 3);
  EXPECT_EQ(answer(), alert(SSL_AD_NO_APPLICATION_PROTOCOL));
}

TEST_F(ForeignClient, IsRefusedWithoutAProtocol) {
  foreign_tls silent{TLS_client_method()};
  silent.begin(true);
  bytes hello;
  silent.step({}, hello);
  EXPECT_EQ(answer_to(hello), alert(SSL_AD_NO_APPLICATION_PROTOCOL));
  EXPECT_EQ(server_state_, tls_session::handshake::failed);
}

TEST_F(ForeignClient, IsRefusedWithTls12) {
  SSL_CTX_set_max_proto_version(other_.context(), TLS1_2_VERSION);
  EXPECT_EQ(answer(), alert(SSL_AD_PROTOCOL_VERSION));
  EXPECT_EQ(server_state_, tls_session::handshake::failed);
}

TEST_F(TlsSession, DoesNotTakeAServerWithACertificateForItsOwn) {
  foreign_tls server{TLS_server_method()};
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"),
                                                                &EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), &X509_free);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_set_pubkey(certificate.get(), key.get());
  ASSERT_GT(X509_sign(certificate.get(), key.get(), EVP_sha256()), 0);
  ASSERT_EQ(SSL_CTX_use_certificate(server.context(), certificate.get()), 1);
  ASSERT_EQ(SSL_CTX_use_PrivateKey(server.context(), key.get()), 1);
  server.begin(false);
  client_ = context_of("clients")->connect(towards);
  ASSERT_EQ(client_->shake(client_socket_.get()), tls_session::handshake::going_on);
  bytes said;
  server.step(raw(server_socket_), said);
  ASSERT_GT(said.size(), 500U);
  ASSERT_GT(::send(server_socket_.get(), said.data(), said.size(), 0), 0);
  EXPECT_EQ(client_->shake(client_socket_.get()), tls_session::handshake::failed);
  EXPECT_EQ(client_->why(), status_foreign_tls);
}

TEST_F(TlsSession, IsToldOfAServerInTheClear) {
  client_ = context_of("clients")->connect(towards);
  ASSERT_EQ(client_->shake(client_socket_.get()), tls_session::handshake::going_on);
  const bytes said = bytes_of(std::string("UXSC\1\0\0\0", 8));
  ASSERT_GT(::send(server_socket_.get(), said.data(), said.size(), 0), 0);
  EXPECT_EQ(client_->shake(client_socket_.get()), tls_session::handshake::failed);
  EXPECT_EQ(client_->why(), status_no_tls);
}

TEST_F(TlsSession, IsToldOfAnEndWithinTheHandshake) {
  client_ = context_of("clients")->connect(towards);
  ASSERT_EQ(client_->shake(client_socket_.get()), tls_session::handshake::going_on);
  ::shutdown(server_socket_.get(), SHUT_RDWR);
  EXPECT_EQ(client_->shake(client_socket_.get()), tls_session::handshake::failed);
  EXPECT_EQ(client_->why(), status_ended_early);
}

}  // namespace
}  // namespace ucx::detail
