// A client over sockets whose every byte a test says: in the clear, by TLS, or at a Unix socket.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/logger.hpp"
#include "base/owned_descriptor.hpp"
#include "carrier/segment.hpp"
#include "carrier/tls.hpp"
#include "connection/frame_sender.hpp"
#include "support/transports/url_scheme.hpp"
#include "ucx/context.hpp"
#include "ucx/remote_descriptor.hpp"
#include "ucx/url.hpp"
#include "wire/control_message.hpp"
#include "wire/frame.hpp"
#include "wire/introduction.hpp"
#include "wire/parcel.hpp"

namespace ucx::test {

class wire_peer {
 public:
  struct heard_frame {
    detail::frame said;
    std::vector<std::byte> payload;
  };

  /// Is connected, and has said nothing. `by` has the client's token.
  wire_peer(const url& server, const url_scheme& by) {
    if (by.name == "unix") {
      ::sockaddr_un there = {};
      there.sun_family = AF_UNIX;
      server.socket_file().copy(there.sun_path, sizeof there.sun_path - 1);
      dial(AF_UNIX, reinterpret_cast<const ::sockaddr*>(&there), sizeof there);
    } else {
      ::sockaddr_in there = {};
      there.sin_family = AF_INET;
      there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      there.sin_port = htons(server.port());
      dial(AF_INET, reinterpret_cast<const ::sockaddr*>(&there), sizeof there);
    }
    if (by.name != "tls") return;
    auto keys = detail::make_tls({.tokens = by.context().token_file, .log = log_.get()});
    EXPECT_TRUE(keys);
    if (keys) session_ = (*keys)->connect("127.0.0.1:1");
  }

  bool is_by_tls() const noexcept { return session_ != nullptr; }
  /// Shakes hands once, where it is by TLS; returns whether that goes on.
  bool shake_once() {
    return session_->shake(socket_.get()) == detail::tls_session::handshake::going_on;
  }
  /// Shakes hands to the end, where it is by TLS.
  void shake() {
    if (!session_ || is_shaken_) return;
    detail::tls_session::handshake made = detail::tls_session::handshake::going_on;
    for (int waits = 0; waits < 100 && made == detail::tls_session::handshake::going_on; ++waits) {
      made = session_->shake(socket_.get());
      if (made == detail::tls_session::handshake::going_on) wait(POLLIN, 300);
    }
    EXPECT_EQ(made, detail::tls_session::handshake::done);
    is_shaken_ = true;
  }

  void say(std::span<const std::byte> bytes) {
    shake();
    while (!bytes.empty()) {
      const ::ssize_t sent = send_some(bytes);
      if (sent < 0 && errno != EAGAIN) return;  // the server has ended it
      if (sent > 0) bytes = bytes.subspan(static_cast<std::size_t>(sent));
      if (!bytes.empty() && !wait(POLLOUT)) return;
    }
    for (int waits = 0; session_ && session_->has_unsent() && waits < 100; ++waits) {
      wait(POLLOUT, 300);
      session_->write(socket_.get(), {}, scratch_);
    }
  }
  /// Says the bytes of a message: `part` of them at most.
  void say(const detail::frame& said, std::span<const std::byte> payload = {},
           std::size_t part = std::size_t(-1)) {
    detail::frame::bytes header = {};
    said.encode(header);
    say_message(detail::frame_sender::message_id, header, payload, part);
  }
  void say(const detail::parcel& said, std::span<const std::byte> payload) {
    detail::parcel::bytes header = {};
    said.encode(header);
    say_message(detail::frame_sender::parcel_id, header, payload, std::size_t(-1));
  }
  /// Returns so many bytes; fewer where the server ends the connection, or says no more.
  std::vector<std::byte> hear(std::size_t size) {
    shake();
    std::vector<std::byte> heard(size);
    std::size_t filled = 0;
    while (filled < size) {
      const ::ssize_t read = receive_some(std::span(heard).subspan(filled));
      if (read == 0) has_ended_ = true;
      if (read < 0 && errno == ECONNRESET) has_ended_ = true;
      if (has_ended_) break;
      if (read > 0) filled += static_cast<std::size_t>(read);
      if (read < 0 && (errno != EAGAIN || !wait(POLLIN))) break;
    }
    heard.resize(filled);
    return heard;
  }
  /// Returns the next frame, or nothing where the connection ends.
  std::optional<heard_frame> next() {
    const std::vector<std::byte> begun = hear(detail::segment_head::size);
    if (begun.size() < detail::segment_head::size) return std::nullopt;
    const auto head =
        detail::decode_segment_head(std::span(begun).first<detail::segment_head::size>());
    if (!head) {
      ADD_FAILURE() << "no message";
      return std::nullopt;
    }
    const std::vector<std::byte> header = hear(head->header);
    heard_frame made{{}, hear(head->payload)};
    if (head->id != detail::frame_sender::message_id) return next();
    const auto read = detail::decode_frame(header);
    if (!read) return std::nullopt;
    made.said = *read;
    return made;
  }
  /// Returns the next one of that kind.
  std::optional<heard_frame> next(detail::opcode kind) {
    for (auto heard = next(); heard; heard = next()) {
      if (heard->said.code == kind) return heard;
    }
    return std::nullopt;
  }
  /// Returns whether the server ends the connection.
  bool hears_the_end() {
    while (next()) {
    }
    return has_ended_;
  }

  void say_preamble() {
    say(detail::preamble::encoded);
    hear(detail::preamble::size);
  }
  /// Opens a session of the connection.
  void greet(std::uint64_t session) {
    say_preamble();
    detail::introduction introduced;
    introduced.features = feature::am;
    introduced.segment = 8192;
    introduced.largest_eager = 4096;
    introduced.largest_header = 4096;
    session_number_ = session;
    say(of(detail::opcode::hello), introduced.encode());
    const auto welcome = next(detail::opcode::welcome);
    EXPECT_TRUE(welcome && welcome->said.status == 0) << "it is not welcome";
  }
  /// Returns a frame of this connection's.
  detail::frame of(detail::opcode code) const {
    detail::frame made;
    made.code = code;
    made.session = session_number_;
    return made;
  }
  /// Asks the server by a control message, and returns its answer.
  template <class Body>
  std::optional<std::vector<std::byte>> ask(detail::control_type type, const Body& body) {
    detail::control_header asked;
    asked.type = type;
    asked.request = ++last_request_;
    say_control(detail::encode_control(asked, body));
    for (auto heard = next(detail::opcode::control); heard; heard = next(detail::opcode::control)) {
      const auto answer = detail::decode_control(heard->payload);
      if (answer && answer->request == last_request_) return std::move(heard->payload);
    }
    return std::nullopt;
  }
  void say_control(std::span<const std::byte> message) {
    detail::frame carrier = of(detail::opcode::control);
    carrier.length = message.size();
    say(carrier, message);
  }
  void greet_server() {
    EXPECT_TRUE(ask(detail::control_type::hello,
                    detail::hello_body{.features = detail::control_feature::all}));
  }
  /// Returns what is told of a name that is opened.
  std::optional<remote_descriptor> open(const std::string& name, access wanted) {
    const auto answer = ask(detail::control_type::open, detail::open_body{name, wanted});
    const auto opened = answer ? detail::decode_opened(*answer) : std::nullopt;
    if (!opened) return std::nullopt;
    return remote_descriptor::decode(opened->descriptor);
  }
  /// Returns a question about the region, of its first eight bytes.
  detail::frame about(const remote_descriptor& region, detail::opcode code) const {
    detail::frame made = of(code);
    made.request = 99;
    made.region = region.region;
    made.incarnation = region.incarnation;
    made.generation = region.generation;
    made.length = code == detail::opcode::notify ? 0 : 8;
    return made;
  }

  /// The process is gone: the system resets the connection, or ends it.
  void die(bool by_reset) {
    const ::linger at_once{1, 0};
    if (by_reset) ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    socket_ = detail::owned_descriptor();
  }

 private:
  void say_message(unsigned id, std::span<const std::byte> header,
                   std::span<const std::byte> payload, std::size_t part) {
    const auto head = detail::segment_head{static_cast<std::uint32_t>(payload.size()),
                                           static_cast<std::uint16_t>(header.size()),
                                           static_cast<std::uint8_t>(id)}
                          .encode();
    std::vector<std::byte> all(head.begin(), head.end());
    all.insert(all.end(), header.begin(), header.end());
    all.insert(all.end(), payload.begin(), payload.end());
    say(std::span<const std::byte>(all).first(std::min(part, all.size())));
  }
  void dial(int family, const ::sockaddr* there, ::socklen_t size) {
    socket_ = detail::owned_descriptor(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(socket_.get(), there, size), 0);
    EXPECT_EQ(::fcntl(socket_.get(), F_SETFL, O_NONBLOCK), 0);
  }
  bool wait(short events, int milliseconds = 30'000) const {
    ::pollfd awaited{socket_.get(), events, 0};
    return ::poll(&awaited, 1, milliseconds) > 0;
  }
  ::ssize_t send_some(std::span<const std::byte> bytes) {
    const ::iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    if (session_) return session_->write(socket_.get(), {&part, 1}, scratch_);
    return ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  ::ssize_t receive_some(std::span<std::byte> into) {
    const ::iovec part{into.data(), into.size()};
    if (session_) return session_->read(socket_.get(), {&part, 1}, scratch_);
    return ::recv(socket_.get(), into.data(), into.size(), MSG_DONTWAIT);
  }

  std::unique_ptr<detail::logger> log_ = *detail::logger::make({}, "test");
  detail::owned_descriptor socket_;
  std::unique_ptr<detail::tls_session> session_;
  bool is_shaken_ = false;
  bool has_ended_ = false;
  std::uint64_t session_number_ = 0;
  std::uint64_t last_request_ = 0;
  std::vector<std::byte> scratch_ = std::vector<std::byte>(detail::tls_context::scratch_size);
};

}  // namespace ucx::test
