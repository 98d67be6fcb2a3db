// Servers and clients by TLS: who is let in, what the asking side is told, and what can be seen.
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/logger.hpp"
#include "base/owned_descriptor.hpp"
#include "carrier/segment.hpp"
#include "carrier/tls.hpp"
#include "os/socket_beside.hpp"
#include "support/basics/soon.hpp"
#include "support/files/temporary_directory.hpp"
#include "ucx/client.hpp"
#include "ucx/context.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"
#include "ucx/server.hpp"
#include "ucx/socket_address.hpp"
#include "ucx/token_file.hpp"
#include "ucx/url.hpp"
#include "ucx/worker.hpp"

namespace ucx::detail {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

/// Returns a socket that is connected to this port of the host.
owned_descriptor connected_to(std::uint16_t port) {
  owned_descriptor made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const ::timeval limit{20, 0};
  ::setsockopt(made.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::sockaddr_in there = {};
  there.sin_family = AF_INET;
  there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  there.sin_port = htons(port);
  EXPECT_EQ(::connect(made.get(), reinterpret_cast<const ::sockaddr*>(&there), sizeof there), 0);
  return made;
}

/// Returns what a server says to these bytes until it ends the connection.
std::string answer_of(std::uint16_t port, std::string_view said) {
  const owned_descriptor socket = connected_to(port);
  EXPECT_EQ(::send(socket.get(), said.data(), said.size(), MSG_NOSIGNAL),
            static_cast<::ssize_t>(said.size()));
  std::string heard;
  std::array<char, 4096> part = {};
  for (;;) {
    const ::ssize_t read = ::recv(socket.get(), part.data(), part.size(), 0);
    EXPECT_FALSE(read < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) << "it does not end";
    if (read <= 0) return heard;
    heard.append(part.data(), static_cast<std::size_t>(read));
  }
}

class TlsServer : public testing::Test {
 protected:
  TlsServer() {
    token_file servers(folder_ / "servers");
    token_ = servers.create("alice");
    token_file(folder_ / "clients").add("127.0.0.1", token_);
  }

  context_options options_of(const std::string& file) {
    context_options made{.transports = {"tls"}, .share_memory = false};
    made.token_file = folder_ / file;
    return made;
  }
  server served(std::size_t workers = 1) {
    context_options chosen = options_of("servers");
    chosen.log = {.level = log_level::info, .sink = [this](log_level, std::string_view line) {
                    const std::lock_guard guard(mutex_);
                    log_ += line;
                    log_ += '\n';
                  }};
    return server({.bind = "127.0.0.1:0", .context = chosen, .workers = workers});
  }
  client client_of(const server& there, const std::string& file = "clients") {
    return client(url(there.url()), {.context = options_by_url(file)});
  }
  context_options options_by_url(const std::string& file) {
    context_options made{.share_memory = false};
    made.token_file = folder_ / file;
    return made;
  }
  /// Returns why a client is not connected, and in which words.
  std::pair<std::error_code, std::string> failure_towards(const url& there,
                                                          const std::string& file = "clients") {
    try {
      client_options options;
      options.context = options_by_url(file);
      const client connected(there, options);
    } catch (const error& thrown) {
      return {thrown.code(), thrown.what()};
    }
    return {};
  }
  /// The server's thread may look into its file of tokens somewhat later.
  bool is_let_in(const server& there, const std::string& file = "clients") {
    return test::soon([&] { return !failure_towards(url(there.url()), file).first; });
  }
  bool is_refused(const server& there, const std::string& file = "clients") {
    return test::soon(
        [&] { return failure_towards(url(there.url()), file).first == errc::permission_denied; });
  }
  std::string log() {
    const std::lock_guard guard(mutex_);
    return log_;
  }
  /// Returns whether the log says so, or will within some seconds.
  bool logs(const std::string& words) {
    for (int i = 0; i < 2000; ++i) {
      if (log().find(words) != std::string::npos) return true;
      std::this_thread::sleep_for(5ms);
    }
    return false;
  }

  test::temporary_directory folder_;
  std::string token_;

 private:
  std::mutex mutex_;
  std::string log_;
};

TEST_F(TlsServer, ReadsAndWritesByMessage) {
  server serving = served();
  EXPECT_THAT(serving.url(), testing::StartsWith("ucxs://127.0.0.1:"));
  std::vector<std::byte> memory(std::size_t{3} << 20U, std::byte{7});
  const publication shown = serving.publish("memory", std::span(memory), access::read_write);
  client reader = client_of(serving);
  EXPECT_THAT(reader.transports(), ElementsAre("tls/tcp"));
  remote_region opened = reader.open("memory", access::read_write);
  std::vector<std::byte> bytes(memory.size());
  opened.read_at(0, bytes);
  EXPECT_EQ(bytes, memory);
  std::fill(bytes.begin(), bytes.end(), std::byte{9});
  opened.write_at(0, bytes);
  opened.flush();
  EXPECT_EQ(memory, bytes);
}

TEST_F(TlsServer, ServesManyClientsByTwoWorkers) {
  server serving = served(2);
  std::vector<std::byte> memory(std::size_t{1} << 20U, std::byte{7});
  const publication shown = serving.publish("memory", std::span(memory), access::read);
  std::vector<client> readers;
  for (int i = 0; i < 8; ++i) readers.push_back(client_of(serving));
  for (client& each : readers) {
    remote_region opened = each.open("memory");
    std::vector<std::byte> bytes(memory.size());
    opened.read_at(0, bytes);
    EXPECT_EQ(bytes, memory);
  }
}

TEST_F(TlsServer, ListensBeyondTheHostToo) {
  const server open({.bind = "0.0.0.0:0", .context = options_of("servers")});
  EXPECT_THAT(open.url(), testing::StartsWith("ucxs://"));
}

TEST_F(TlsServer, NeedsATokenToAccept) {
  std::error_code ec;
  const server of_user({.bind = "127.0.0.1:0", .context = options_of("clients")}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
  const server without({.bind = "127.0.0.1:0", .context = options_of("none")}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
}

TEST_F(TlsServer, RefusesAnotherToken) {
  const server serving = served();
  token_file(folder_ / "others").create("own");
  const auto told = failure_towards(url(serving.url()), "others");
  EXPECT_EQ(told.first, errc::permission_denied);
  EXPECT_THAT(told.second, HasSubstr("refused the token"));
  EXPECT_TRUE(logs("its token is not accepted here")) << log();
  EXPECT_TRUE(logs("127.0.0.1:")) << log();
}

TEST_F(TlsServer, AcceptsATokenThatIsMadeWhileItRuns) {
  server serving = served();
  const std::string text = token_file(folder_ / "servers").create("bob");
  token_file(folder_ / "bob").add("127.0.0.1", text);
  EXPECT_TRUE(is_let_in(serving, "bob"));
  EXPECT_EQ(client_of(serving, "bob").list().size(), 0U);
  token_file(folder_ / "servers").remove("bob");
  EXPECT_TRUE(is_refused(serving, "bob"));
  EXPECT_EQ(client_of(serving).list().size(), 0U);
}

/// Also where that was the last one, and where the file goes; a file that can not be read is no
/// end.
TEST_F(TlsServer, LetsNoPeerInWithoutTokens) {
  server serving = served();
  const auto restore = [&] {
    std::filesystem::copy_file(folder_ / "kept", folder_ / "servers",
                               std::filesystem::copy_options::overwrite_existing);
  };
  std::filesystem::copy_file(folder_ / "servers", folder_ / "kept");
  token_file(folder_ / "servers").remove("alice");
  EXPECT_TRUE(is_refused(serving));
  restore();
  EXPECT_TRUE(is_let_in(serving));
  EXPECT_EQ(client_of(serving).list().size(), 0U);
  std::filesystem::remove(folder_ / "servers");
  EXPECT_TRUE(is_refused(serving));
  restore();
  EXPECT_TRUE(is_let_in(serving));
  EXPECT_EQ(client_of(serving).list().size(), 0U);
  ASSERT_EQ(::chmod((folder_ / "servers").c_str(), 0644), 0);
  EXPECT_EQ(client_of(serving).list().size(), 0U);
}

/// More than there are places for those who shake hands.
TEST_F(TlsServer, LetsManyInAtOnce) {
  server serving = served();
  const auto list = [&] {
    for (int tries = 0;; ++tries) {
      try {
        return client_of(serving).list().size();
      } catch (const error& why) {  // a slow server lets the oldest guest go for another
        const bool may_be = why.code() == errc::connection_refused ||
                            why.code() == errc::connection_reset || why.code() == errc::timed_out;
        if (!may_be || tries == 20) throw;
      }
    }
  };
  std::vector<std::future<std::size_t>> listed;
  for (int i = 0; i < 80; ++i) listed.push_back(std::async(std::launch::async, list));
  for (auto& each : listed) EXPECT_EQ(each.get(), 0U);
}

TEST_F(TlsServer, AsksForATokenAndForItsSafety) {
  const server serving = served();
  auto told = failure_towards(url(serving.url()), "none");
  EXPECT_EQ(told.first, errc::permission_denied);
  EXPECT_THAT(told.second, HasSubstr("there is no token"));
  // Two of other servers, and none to choose.
  token_file(folder_ / "ambiguous").add("node7", token_);
  token_file(folder_ / "ambiguous").add("node8", token_);
  told = failure_towards(url(serving.url()), "ambiguous");
  EXPECT_EQ(told.first, errc::permission_denied);
  EXPECT_THAT(told.second, HasSubstr("there is no token for this"));
  ASSERT_EQ(::chmod((folder_ / "clients").c_str(), 0640), 0);
  told = failure_towards(url(serving.url()));
  EXPECT_EQ(told.first, errc::not_secure);
  EXPECT_THAT(told.second, HasSubstr("0640"));
}

TEST_F(TlsServer, TellsAClientInTheClear) {
  const server serving = served();
  const url there(serving.url());
  const auto told = failure_towards(url::over_socket(there.host(), there.port()));
  EXPECT_EQ(told.first, errc::not_secure);
  EXPECT_THAT(told.second, HasSubstr("ucxs://"));
  EXPECT_TRUE(logs("a client in the clear")) << log();
}

TEST_F(TlsServer, IsNotOneInTheClear) {
  const server serving({.bind = "127.0.0.1:0", .context = {.transports = {"socket"}}});
  const url there(serving.url());
  const auto told = failure_towards(url::over_tls(there.host(), there.port()));
  EXPECT_EQ(told.first, errc::not_secure);
  EXPECT_THAT(told.second, HasSubstr("does not speak TLS"));
}

TEST_F(TlsServer, SaysNothingOfItsOwnToStrangers) {
  const server serving = served();
  const std::uint16_t port = url(serving.url()).port();
  EXPECT_EQ(answer_of(port, "GET / HTTP/1.1\r\n\r\n"), "");
  EXPECT_EQ(answer_of(port, "SSH-2.0-OpenSSH_9.2\r\n"), "");
  EXPECT_EQ(answer_of(port, std::string_view("UXSC\1\0\0\0", 8)),
            std::string("\x15\3\3\0\2\2\x46", 7));
  EXPECT_EQ(client_of(serving).list().size(), 0U);
}

TEST_F(TlsServer, TellsItsVersionWithinTls) {
  const server serving = served();
  const owned_descriptor socket = connected_to(url(serving.url()).port());
  const auto log = *logger::make({}, "test");
  const auto keys = make_tls({.tokens = folder_ / "clients", .log = log.get()});
  ASSERT_TRUE(keys);
  const auto session = (*keys)->connect("127.0.0.1:1");
  std::vector<std::byte> scratch(tls_context::scratch_size);
  for (int i = 0; session->shake(socket.get()) == tls_session::handshake::going_on; ++i) {
    ASSERT_LT(i, 2000);
    std::this_thread::sleep_for(5ms);
  }
  auto said = preamble::encoded;
  said[4] = std::byte{2};
  const ::iovec part{said.data(), said.size()};
  ASSERT_EQ(session->write(socket.get(), {&part, 1}, scratch), 8);
  std::array<std::byte, 8> heard = {};
  const ::iovec into{heard.data(), heard.size()};
  ::ssize_t read = -1;
  for (int i = 0; i < 2000 && read < 0; ++i) {
    read = session->read(socket.get(), {&into, 1}, scratch);
    if (read < 0) {
      ASSERT_EQ(errno, EAGAIN);
      std::this_thread::sleep_for(5ms);
    }
  }
  EXPECT_EQ(read, 8);
  EXPECT_EQ(heard, preamble::encoded);
}

TEST_F(TlsServer, IsNotHeldUpByManyStrangers) {
  server serving = served();
  const std::uint16_t port = url(serving.url()).port();
  std::vector<owned_descriptor> strangers;
  for (int i = 0; i < 100; ++i) {
    strangers.push_back(connected_to(port));
    ASSERT_EQ(::send(strangers.back().get(), "\x16\3\1\2", 4, MSG_NOSIGNAL), 4);
  }
  EXPECT_EQ(client_of(serving).list().size(), 0U);
}

/// Goes between a client and a server, and keeps what both say.
class listening_wire {
 public:
  explicit listening_wire(std::uint16_t to)
      : to_(to), door_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    ::sockaddr_in here = {};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::socklen_t size = sizeof here;
    EXPECT_EQ(::bind(door_.get(), reinterpret_cast<const ::sockaddr*>(&here), size), 0);
    EXPECT_EQ(::listen(door_.get(), 1), 0);
    const ::timeval limit{20, 0};
    ::setsockopt(door_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::getsockname(door_.get(), reinterpret_cast<::sockaddr*>(&here), &size);
    port_ = ntohs(here.sin_port);
    carrying_ = std::jthread([this] { carry(); });
  }
  std::uint16_t port() const noexcept { return port_; }
  /// Returns what was said. The client has to be gone.
  const std::string& said() {
    carrying_.join();
    return said_;
  }

 private:
  void carry() {
    const owned_descriptor from(::accept(door_.get(), nullptr, nullptr));
    const owned_descriptor to = connected_to(to_);
    std::vector<char> part(1U << 16U);
    for (;;) {
      std::array<::pollfd, 2> both{::pollfd{from.get(), POLLIN, 0}, ::pollfd{to.get(), POLLIN, 0}};
      if (::poll(both.data(), both.size(), 20'000) <= 0) return;
      for (const bool forth : {true, false}) {
        if (both[forth ? 0 : 1].revents == 0) continue;
        const ::ssize_t read =
            ::recv(forth ? from.get() : to.get(), part.data(), part.size(), MSG_DONTWAIT);
        if (read <= 0) return;
        said_.append(part.data(), static_cast<std::size_t>(read));
        ::send(forth ? to.get() : from.get(), part.data(), static_cast<std::size_t>(read),
               MSG_NOSIGNAL);
      }
    }
  }

  std::uint16_t to_;
  owned_descriptor door_;
  std::uint16_t port_ = 0;
  std::string said_;
  std::jthread carrying_;
};

TEST_F(TlsServer, ShowsNothingOnTheWire) {
  server serving = served();
  std::string memory(100'000, 'x');
  memory += "the secret at the end";
  const publication shown =
      serving.publish("a-name-of-note", std::as_bytes(std::span(std::as_const(memory))));
  listening_wire wire(url(serving.url()).port());
  {
    client reader(url::over_tls("127.0.0.1", wire.port()), {.context = options_by_url("clients")});
    std::string bytes(memory.size(), ' ');
    reader.open("a-name-of-note").read_at(0, std::as_writable_bytes(std::span(bytes)));
    EXPECT_EQ(bytes, memory);
  }
  const std::string& said = wire.said();
  EXPECT_GT(said.size(), memory.size());
  for (const std::string words :
       {"a-name-of-note", "the secret", "xxxxxxxx", "ucxio", "alice", "127.0.0.1"}) {
    EXPECT_EQ(said.find(words), std::string::npos) << words;
  }
  EXPECT_EQ(said.find(token_.substr(6, 10)), std::string::npos);
}

TEST_F(TlsServer, WouldShowThatInTheClear) {
  // That the search finds what is there to be found.
  server serving(
      {.bind = "127.0.0.1:0", .context = {.transports = {"socket"}, .share_memory = false}});
  const std::string memory = "the secret";
  const publication shown = serving.publish("a-name-of-note", std::as_bytes(std::span(memory)));
  listening_wire wire(url(serving.url()).port());
  {
    client reader(url::over_socket("127.0.0.1", wire.port()), {.context = {.share_memory = false}});
    std::string bytes(memory.size(), ' ');
    reader.open("a-name-of-note").read_at(0, std::as_writable_bytes(std::span(bytes)));
  }
  const std::string& said = wire.said();
  EXPECT_NE(said.find("a-name-of-note"), std::string::npos);
  EXPECT_NE(said.find("the secret"), std::string::npos);
  EXPECT_NE(said.find("UXSC"), std::string::npos);
}

TEST_F(TlsServer, TakesATokenFromADescriptor) {
  server serving = served();
  std::array<int, 2> pipe = {};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const owned_descriptor reading(pipe[0]);
  const std::string line = "use 127.0.0.1 " + token_ + "\n";
  ASSERT_EQ(::write(pipe[1], line.data(), line.size()), static_cast<::ssize_t>(line.size()));
  ::close(pipe[1]);
  context_options options{.share_memory = false};
  options.token_file = "/dev/fd/" + std::to_string(reading.get());
  client reader(url(serving.url()), {.context = options});
  EXPECT_EQ(reader.list().size(), 0U);
}

/// Over one context, whose tokens are of different servers.
TEST_F(TlsServer, HasItsOwnTokenWhereARequestConnects) {
  token_file others(folder_ / "other servers");
  const std::string other_token = others.create("bob");
  const server serving = served();
  const server other({.bind = "127.0.0.1:0", .context = options_of("other servers")});
  worker driven(context(options_of("clients")), {.progress = progress_mode::external});
  const auto connect = [&](const server& to, client& made) {
    std::error_code ec;
    request connecting = client::start_connect(driven, url(to.url()), made);
    connecting.wait(ec);
    return ec;
  };
  client made;
  EXPECT_FALSE(connect(serving, made));
  EXPECT_EQ(made.list().size(), 0U);
  client refused;
  EXPECT_EQ(connect(other, refused), errc::permission_denied);
  const std::uint16_t port = url(other.url()).port();
  token_file(folder_ / "clients").add("127.0.0.1:" + std::to_string(port), other_token);
  worker later(context(options_of("clients")), {.progress = progress_mode::external});
  client both;
  client::start_connect(later, url(other.url()), both).wait();
  EXPECT_EQ(both.list().size(), 0U);
  client::start_connect(later, url(serving.url()), made).wait();
  EXPECT_EQ(made.list().size(), 0U);
}

/// A process of another user could be somebody else's server. Who connects by request is told as
/// who waits.
TEST_F(TlsServer, IsNotAskedWhereAnotherUserListens) {
  if (::geteuid() != 0) GTEST_SKIP() << "this process may not become another user";
  ::setfsuid(65534);
  const owned_descriptor listens(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ::setfsuid(0);
  ::sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ::socklen_t size = sizeof at;
  auto* const native = reinterpret_cast<::sockaddr*>(&at);
  ASSERT_EQ(::bind(listens.get(), native, size), 0);
  ASSERT_EQ(::listen(listens.get(), 5), 0);
  ASSERT_EQ(::getsockname(listens.get(), native, &size), 0);
  const std::string place = "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
  if (stranger_at(socket_address(place)).empty()) {
    GTEST_SKIP() << "this process may not become another user";
  }
  const url there("ucxs://" + place);
  worker driven(context(options_of("clients")), {.progress = progress_mode::external});
  client made;
  request refused = client::start_connect(driven, there, made);
  refused.wait_for(20s);
  EXPECT_EQ(refused.error(), errc::not_secure) << refused.description();
  EXPECT_THAT(refused.description(), HasSubstr("user 65534 listens at " + place));
  const auto [why, words] = failure_towards(there);
  EXPECT_EQ(why, errc::not_secure);
  EXPECT_THAT(words, HasSubstr("ucxio token add " + place));
  token_file(folder_ / "clients").add(place, token_);
  worker later(context(options_of("clients")), {.progress = progress_mode::external});
  request asked = client::start_connect(later, there, made, {.timeout = 200ms});
  asked.wait_for(20s);
  EXPECT_EQ(asked.error(), errc::timed_out) << asked.description();
}

TEST_F(TlsServer, HasAUnixSocketBesideItsPortForItsUser) {
  context_options chosen = options_of("servers");
  chosen.transports = {"tls", "unix"};
  server both({.bind = "127.0.0.1:0", .context = chosen, .workers = 2});
  EXPECT_TRUE(both.url().starts_with("ucxs://127.0.0.1:"));
  EXPECT_FALSE(both.address().socket.is_unix());
  std::array<std::byte, 8> bytes = {};
  const publication shown = both.publish("x", bytes, access::read);
  for (int round = 0; round < 2; ++round) {  // each worker has its turn
    client by_unix(url(both.url()), {.context = {.share_memory = false}});
    client by_tls = client_of(both);
    EXPECT_THAT(by_unix.transports(), ElementsAre("socket/unix"));
    EXPECT_THAT(by_tls.transports(), ElementsAre("tls/tcp")) << "it names its tokens";
    for (client* const each : {&by_unix, &by_tls}) {
      EXPECT_EQ(each->list().size(), 1U);
      std::array<std::byte, 8> read = {std::byte{1}};
      each->open("x").read_at(0, read);
      EXPECT_EQ(read, bytes);
    }
  }
  const std::string place = *socket_beside(both.address().socket);
  EXPECT_TRUE(std::filesystem::exists(place));
  both.close();
  EXPECT_FALSE(std::filesystem::exists(place));
}

TEST_F(TlsServer, HasNoOtherTransportBesideIt) {
  std::error_code ec;
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"tls", "tcp"}, {"tls", "unix", "tcp"}, {"tls", "socket"}}) {
    context_options chosen = options_of("servers");
    chosen.transports = wrong;
    const context refused(chosen, ec);
    EXPECT_EQ(ec, errc::bad_configuration) << wrong.back();
  }
  context_options both = options_of("servers");
  both.transports = {"tls", "unix"};
  const server at_a_path({.bind = "unix:", .context = both}, ec);
  EXPECT_EQ(ec, errc::bad_configuration);
  EXPECT_EQ(context({.transports = {"ucx"}}).transports(), context().transports());
}

TEST_F(TlsServer, InvitesOneClientByACode) {
  server there = served();
  const std::string code = there.invite("bob");
  EXPECT_TRUE(code.starts_with("ucxi1-"));
  token_file invited(folder_ / "invited");
  std::error_code ec;
  invited.log_in(url(there.url()), "ucxt1-" + code.substr(6), ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  invited.log_in(url(there.url()), code);
  EXPECT_TRUE(logs("a client that was invited has the token \"bob\""));
  EXPECT_EQ(client_of(there, "invited").list().size(), 0U);
  EXPECT_TRUE(logs("was let in by the token \"bob\""));
  EXPECT_THAT(log(), testing::Not(HasSubstr("\"invitation\""))) << "the code is no token";
  invited.log_in(url(there.url()), code, ec);
  EXPECT_EQ(ec, errc::permission_denied) << "it counted";
  const std::string earlier = there.invite("carol");
  const std::string later = there.invite("carol");
  invited.log_in(url(there.url()), earlier, ec);
  EXPECT_EQ(ec, errc::permission_denied) << "another one was made";
  invited.log_in(url("ucx://127.0.0.1:1"), later, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  EXPECT_EQ(there.invite("a b", ec), "");
  EXPECT_EQ(ec, errc::bad_name);
}

/// Another process changes the file of tokens, slowly.
TEST_F(TlsServer, ServesOthersWhileATokenIsKept) {
  server there = served();
  client other = client_of(there);
  std::error_code ec;
  bool has_waited = false;
  // The server waits 2 s for the lock. A slow machine gets another code.
  for (int tries = 0; tries < 10 && (!has_waited || ec); ++tries) {
    const std::string code = there.invite("bob");
    owned_descriptor lock(::open((folder_ / "").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_EQ(::flock(lock.get(), LOCK_EX | LOCK_NB), 0);
    auto login = std::async(std::launch::async, [&] {
      std::error_code outcome;
      token_file(folder_ / "elsewhere/invited").log_in(url(there.url()), code, outcome);
      return outcome;
    });
    std::this_thread::sleep_for(200ms);  // so that it waits for the lock by now
    EXPECT_EQ(other.list().size(), 0U);
    has_waited = login.wait_for(0ms) == std::future_status::timeout;
    lock = owned_descriptor();
    ec = login.get();
  }
  EXPECT_TRUE(has_waited);
  EXPECT_FALSE(ec) << ec.message();
  EXPECT_TRUE(is_let_in(there, "elsewhere/invited"));
}

TEST_F(TlsServer, InvitesNobodyWithoutAFileOfTokens) {
  std::error_code ec;
  server clear({.bind = "127.0.0.1:0", .context = {.transports = {"socket"}}});
  EXPECT_EQ(clear.invite("bob", ec), "");
  EXPECT_EQ(ec, errc::not_supported);
}

}  // namespace
}  // namespace ucx::detail
