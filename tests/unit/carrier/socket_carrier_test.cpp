// Contexts of sockets: what they offer, what they refuse, and who is let in.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/owned_descriptor.hpp"
#include "carrier/carrier_listener.hpp"
#include "carrier/segment.hpp"
#include "connection/frame_sender.hpp"
#include "os/unix_peer.hpp"
#include "support/transports/ipv6.hpp"
#include "ucx/client.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/server.hpp"
#include "ucx/url.hpp"
#include "ucx/worker.hpp"
#include "wire/frame.hpp"
#include "wire/introduction.hpp"

namespace ucx::detail {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

context_options of_sockets() { return {.transports = {"socket"}, .share_memory = false}; }

server served_by_sockets() { return server({.bind = "127.0.0.1:0", .context = of_sockets()}); }

client client_of(const server& there) {
  return client(url(there.url()), {.context = {.share_memory = false}});
}

/// Connected by a program that is no peer.
class stranger {
 public:
  explicit stranger(const server& to) : stranger(url(to.url()).port()) {}
  explicit stranger(std::uint16_t port, std::uint32_t from = INADDR_LOOPBACK)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    ::sockaddr_in here = {};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(from);
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<const ::sockaddr*>(&here), sizeof here), 0);
    const ::timeval limit{20, 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::sockaddr_in there = {};
    there.sin_family = AF_INET;
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    there.sin_port = htons(port);
    if (::connect(fd_.get(), reinterpret_cast<const ::sockaddr*>(&there), sizeof there) != 0) {
      ADD_FAILURE() << "no connection";
    }
  }

  void say(std::span<const std::byte> bytes) {
    ASSERT_EQ(::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<::ssize_t>(bytes.size()));
  }
  void say(std::string_view text) { say(std::as_bytes(std::span(text))); }
  void say(unsigned id, std::span<const std::byte> header, std::span<const std::byte> payload) {
    say(segment_head{static_cast<std::uint32_t>(payload.size()),
                     static_cast<std::uint16_t>(header.size()), static_cast<std::uint8_t>(id)}
            .encode());
    say(header);
    if (!payload.empty()) say(payload);
  }
  /// Returns what comes until the connection ends; it fails where it does not end.
  std::vector<std::byte> hears_until_the_end() {
    std::vector<std::byte> heard;
    std::array<std::byte, 4096> part = {};
    for (;;) {
      const ::ssize_t read = ::recv(fd_.get(), part.data(), part.size(), 0);
      if (read < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        ADD_FAILURE() << "the connection does not end";
        return heard;
      }
      if (read <= 0) return heard;
      heard.insert(heard.end(), part.begin(), part.begin() + read);
    }
  }
  std::vector<std::byte> hears(std::size_t size) {
    std::vector<std::byte> heard(size);
    if (size == 0) return heard;  // the system would wait for more
    EXPECT_EQ(::recv(fd_.get(), heard.data(), size, MSG_WAITALL), static_cast<::ssize_t>(size));
    return heard;
  }

 private:
  owned_descriptor fd_;
};

TEST(SocketContext, HasNothingOfUcx) {
  const context made(of_sockets());
  const worker driver(made, {.progress = progress_mode::caller});
  EXPECT_EQ(made.native_handle(), nullptr);
  EXPECT_EQ(driver.native_handle(), nullptr);
  EXPECT_EQ(made.features(), feature::am | feature::wakeup);
  EXPECT_THAT(made.transports(), ElementsAre("socket/tcp"));
  EXPECT_THAT(made.unused(), testing::IsEmpty());
  std::error_code ec;
  driver.address(ec);
  EXPECT_EQ(ec, errc::not_supported);
  EXPECT_EQ(driver.attributes().address_size, 0U);
}

TEST(SocketContext, RefusesWhatContradictsIt) {
  const auto refused = [](const std::function<void(context_options&)>& change) {
    context_options options = of_sockets();
    change(options);
    try {
      const context made(options);
    } catch (const error& thrown) {
      return std::pair(thrown.code(), std::string(thrown.what()));
    }
    return std::pair(std::error_code(), std::string());
  };
  auto told = refused([](context_options& o) { o.transports.push_back("tcp"); });
  EXPECT_EQ(told.first, errc::bad_configuration);
  EXPECT_THAT(told.second, HasSubstr("no other one beside it"));
  told = refused([](context_options& o) { o.devices = {"lo"}; });
  EXPECT_EQ(told.first, errc::bad_configuration);
  EXPECT_THAT(told.second, HasSubstr("takes no devices"));
  told = refused([](context_options& o) { o.configuration = {{"RNDV_THRESH", "inf"}}; });
  EXPECT_EQ(told.first, errc::bad_configuration);
  EXPECT_THAT(told.second, HasSubstr("RNDV_THRESH"));
  told = refused([](context_options& o) { o.peer_users = {1000, overflow_user()}; });
  EXPECT_EQ(told.first, errc::bad_configuration);
  EXPECT_THAT(told.second, HasSubstr("stands for all users"));
  told = refused([](context_options& o) { o.peer_groups = {65534}; });
  EXPECT_EQ(told.first, errc::bad_configuration);
  EXPECT_THAT(told.second, HasSubstr("stands for all groups"));
  told = refused([](context_options& o) { o.require_rdma = true; });
  EXPECT_EQ(told.first, errc::no_rdma);
}

TEST(SocketServer, IsReachedByItsSchemeOnly) {
  const server serving = served_by_sockets();
  const url there(serving.url());
  EXPECT_TRUE(there.is_socket());
  EXPECT_THAT(serving.url(), testing::StartsWith("ucx+tcp://127.0.0.1:"));
  EXPECT_EQ(serving.address().socket.port(), there.port());
  EXPECT_TRUE(serving.address().worker.native().empty());
  std::error_code ec;
  const client by_ucx(url(there.host(), there.port()),
                      {.context = {.transports = {"tcp"}}, .worker = {.connect_timeout = 2s}}, ec);
  EXPECT_TRUE(ec);
  const client contrary(url(there.host(), there.port()), {.context = of_sockets()}, ec);
  EXPECT_EQ(ec, errc::bad_configuration);
  const client of_others(there, {.context = {.transports = {"tcp"}}}, ec);
  EXPECT_EQ(ec, errc::bad_configuration);
}

TEST(SocketServer, TellsThatItIsOpenToAnyoneBeyondTheHost) {
  std::error_code ec;
  const server open({.bind = "0.0.0.0:0", .context = of_sockets()}, ec);
  EXPECT_EQ(ec, errc::not_secure);
}

TEST(SocketServer, ServesBothFamiliesAtTheWildcardOfIpv6) {
  if (!test::has_ipv6()) GTEST_SKIP() << "this machine has no ::1";
  server serving({.bind = "[::]:0", .insecure = true, .context = of_sockets()});
  std::vector<std::byte> memory(100'000, std::byte{7});
  const publication shown = serving.publish("memory", std::span(memory), access::read);
  const std::string port = std::to_string(serving.address().socket.port());
  for (const char* const host : {"127.0.0.1", "[::1]"}) {
    client reader(url("ucx+tcp://" + std::string(host) + ":" + port),
                  {.context = {.share_memory = false}});
    std::vector<std::byte> bytes(memory.size());
    reader.open("memory").read_at(0, bytes);
    EXPECT_EQ(bytes, memory) << host;
  }
}

TEST(SocketServer, ReadsAndWritesByMessage) {
  server serving = served_by_sockets();
  std::vector<std::byte> memory(std::size_t{3} << 20U, std::byte{7});
  const publication shown = serving.publish("memory", std::span(memory), access::read_write);
  client reader = client_of(serving);
  remote_region opened = reader.open("memory", access::read_write);
  EXPECT_EQ(opened.description().find("rkey"), std::string::npos);
  std::vector<std::byte> bytes(memory.size());
  opened.read_at(0, bytes);
  EXPECT_EQ(bytes, memory);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 31 >> 3U);
  opened.write_at(0, bytes);
  opened.flush();
  EXPECT_EQ(bytes, memory);
  EXPECT_THAT(reader.transports(), ElementsAre("socket/tcp"));
}

TEST(SocketServer, EndsStrangersAndServesOn) {
  server serving = served_by_sockets();
  for (const std::string_view words :
       {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "UXRDUXRD",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"}) {
    stranger other(serving);
    other.say(words);
    EXPECT_THAT(other.hears_until_the_end(), testing::IsEmpty());
  }
  client reader = client_of(serving);
  EXPECT_TRUE(reader.list().empty());
}

TEST(SocketServer, TellsPeersOfAnotherVersionItsOwn) {
  const server serving = served_by_sockets();
  stranger newer(serving);
  auto said = preamble::encoded;
  said[4] = std::byte{9};
  newer.say(said);
  EXPECT_THAT(newer.hears_until_the_end(), testing::ElementsAreArray(preamble::encoded));
}

TEST(SocketServer, LetsTheOldestOfManySilentOnesGo) {
  const server serving = served_by_sockets();
  std::vector<std::unique_ptr<stranger>> silent;
  for (std::size_t i = 0; i < carrier_listener::most_guests + 4; ++i) {
    silent.push_back(std::make_unique<stranger>(serving));
    if (i % 2 == 0) silent.back()->say("UX");
  }
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_THAT(silent[i]->hears_until_the_end(), testing::IsEmpty());
  }
  client reader = client_of(serving);
  EXPECT_TRUE(reader.list().empty());
}

TEST(SocketListener, LetsTheSourceGoThatHasMost) {
  const context made(of_sockets());
  worker driver(made, {.progress = progress_mode::caller});
  const listener door(driver, socket_address("127.0.0.1:0"));
  stranger alone(door.address().port(), INADDR_LOOPBACK + 1);
  std::vector<std::unique_ptr<stranger>> guests;
  for (std::size_t i = 0; i < carrier_listener::most_guests + 4; ++i) {
    guests.push_back(std::make_unique<stranger>(door.address().port()));
    for (int rounds = 0; rounds < 4; ++rounds) driver.progress();
  }
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_THAT(guests[i]->hears_until_the_end(), testing::IsEmpty());
  }
  alone.say(preamble::encoded);
  for (int rounds = 0; rounds < 100; ++rounds) driver.progress();
  EXPECT_THAT(alone.hears(preamble::size), testing::ElementsAreArray(preamble::encoded));
}

/// The system tells in one round of one who comes, and of the oldest guest, which has to go for it.
TEST(SocketListener, HearsAGuestThatItHasJustLetGo) {
  const context made(of_sockets());
  worker driver(made, {.progress = progress_mode::caller});
  const listener door(driver, socket_address("127.0.0.1:0"));
  std::vector<std::unique_ptr<stranger>> guests;
  for (std::size_t i = 0; i < carrier_listener::most_guests; ++i) {
    guests.push_back(std::make_unique<stranger>(door.address().port()));
    for (int rounds = 0; rounds < 4; ++rounds) driver.progress();
  }
  const stranger last(door.address().port());
  for (const auto& each : guests) each->say("U");
  const std::jthread driving([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) driver.progress();
  });
  EXPECT_THAT(guests.front()->hears_until_the_end(), testing::IsEmpty());
}

TEST(SocketServer, LetsASilentOneGoAfterAWhile) {
  const server serving = served_by_sockets();
  stranger silent(serving);
  silent.say("UXS");
  EXPECT_THAT(silent.hears_until_the_end(), testing::IsEmpty());
}

TEST(SocketServer, EndsPeersThatBreakTheFraming) {
  server serving = served_by_sockets();
  client reader = client_of(serving);
  const auto ends = [&](segment_head head, std::byte reserved) {
    stranger hostile(serving);
    hostile.say(preamble::encoded);
    EXPECT_THAT(hostile.hears(preamble::size), testing::ElementsAreArray(preamble::encoded));
    auto said = head.encode();
    said[7] = reserved;
    hostile.say(said);
    hostile.hears_until_the_end();
  };
  ends({static_cast<std::uint32_t>(segment_head::longest_payload + 1), 0, 255}, {});
  ends({0xffffffffU, 0xffff, 255}, {});
  ends({0, static_cast<std::uint16_t>(segment_head::longest_header + 1), 255}, {});
  ends({0, 64, 255}, std::byte{2});
  ends({1, 64, 255}, std::byte{1});
  EXPECT_TRUE(reader.list().empty());
}

/// A frame belongs to the connection that it came by.
TEST(SocketServer, EndsAPeerThatNamesAnothersSession) {
  server serving = served_by_sockets();
  std::vector<std::byte> memory(64, std::byte{1});
  const publication shown = serving.publish("memory", std::span(memory), access::read_write);
  const auto greet = [](stranger& peer, std::uint64_t session) {
    peer.say(preamble::encoded);
    peer.hears(preamble::size);
    introduction said;
    said.features = feature::am;
    said.segment = 8192;
    said.largest_eager = 4096;
    said.largest_header = 4096;
    const std::vector<std::byte> greeting = said.encode();
    frame hello;
    hello.code = opcode::hello;
    hello.session = session;
    std::array<std::byte, frame::size> header = {};
    hello.encode(header);
    peer.say(frame_sender::message_id, header, greeting);
    const std::vector<std::byte> head = peer.hears(segment_head::size + frame::size);
    const auto welcome = decode_frame(std::span(head).subspan(segment_head::size));
    ASSERT_TRUE(welcome);
    EXPECT_EQ(welcome->code, opcode::welcome);
    EXPECT_EQ(welcome->status, 0U);
    peer.hears(take_at<std::uint32_t>(head, 0));
  };
  stranger victim(serving);
  greet(victim, 11);
  stranger hostile(serving);
  greet(hostile, 12);
  frame bye;
  bye.code = opcode::bye;
  bye.session = 11;
  std::array<std::byte, frame::size> header = {};
  bye.encode(header);
  hostile.say(frame_sender::message_id, header, {});
  hostile.hears_until_the_end();
  // The other one goes on: its ping is answered.
  frame ping;
  ping.code = opcode::ping;
  ping.session = 11;
  ping.encode(header);
  victim.say(frame_sender::message_id, header, {});
  bool answered = false;
  for (int messages = 0; messages < 4 && !answered; ++messages) {
    const std::vector<std::byte> begun = victim.hears(segment_head::size);
    const auto head = decode_segment_head(std::span<const std::byte, segment_head::size>(begun));
    ASSERT_TRUE(head);
    const std::vector<std::byte> rest = victim.hears(head->header);
    victim.hears(head->payload);
    const auto heard = decode_frame(rest);
    answered = heard && heard->code == opcode::pong;
  }
  EXPECT_TRUE(answered);
}

TEST(SocketClient, IsToldThatNobodyIsThere) {
  std::uint16_t port = 0;
  {
    const server gone = served_by_sockets();
    port = url(gone.url()).port();
  }
  std::error_code ec;
  const client nowhere(url::over_socket("127.0.0.1", port), {}, ec);
  EXPECT_EQ(ec, errc::connection_refused);
}

TEST(SocketClient, IsToldThatTheServerEnds) {
  std::optional<server> serving(served_by_sockets());
  std::vector<std::byte> memory(4096, std::byte{1});
  std::optional<publication> shown(serving->publish("memory", std::span(memory)));
  client reader = client_of(*serving);
  remote_region opened = reader.open("memory");
  shown.reset();
  serving.reset();
  std::error_code ec;
  std::array<std::byte, 8> bytes = {};
  opened.read_at(0, bytes, {}, ec);
  EXPECT_TRUE(ec);
}

TEST(SocketClient, IsToldThatTheServerIsOfAnotherVersion) {
  const owned_descriptor listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ::sockaddr_in here = {};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(listening.get(), reinterpret_cast<const ::sockaddr*>(&here), sizeof here), 0);
  ASSERT_EQ(::listen(listening.get(), 1), 0);
  ::socklen_t size = sizeof here;
  ::getsockname(listening.get(), reinterpret_cast<::sockaddr*>(&here), &size);
  const context made(of_sockets());
  const worker driver(made, {.progress = progress_mode::sleeping_thread});
  endpoint connection(driver,
                      socket_address::from_native(reinterpret_cast<::sockaddr*>(&here), size),
                      {.wait = connect_wait::none});
  const owned_descriptor accepted(::accept(listening.get(), nullptr, nullptr));
  auto said = preamble::encoded;
  said[4] = std::byte{2};
  ASSERT_EQ(::send(accepted.get(), said.data(), said.size(), MSG_NOSIGNAL),
            static_cast<::ssize_t>(said.size()));
  std::error_code ec;
  connection.wait_connected(ec);
  EXPECT_EQ(ec, errc::version_mismatch);
}

TEST(SocketWorker, ConnectsToItself) {
  const context made(of_sockets());
  worker both(made, {.progress = progress_mode::sleeping_thread});
  const listener door(both, socket_address("127.0.0.1:0"));
  endpoint connection(both, door.address());
  connection.wait_connected();
  std::vector<std::byte> memory(std::size_t{1} << 20U, std::byte{5});
  const memory_region shown(made, std::span(memory), access::read);
  remote_region opened(connection, shown.descriptor());
  std::vector<std::byte> bytes(memory.size());
  opened.read_at(0, bytes);
  EXPECT_EQ(bytes, memory);
  EXPECT_EQ(connection.native_handle(), nullptr);
}

}  // namespace
}  // namespace ucx::detail
