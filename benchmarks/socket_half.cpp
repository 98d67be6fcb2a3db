#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "message_halves.hpp"
#include "network.hpp"

namespace ucx::benchmarks {
namespace {

/// A send returns when the system has the bytes; its peer never waits for us with full buffers.
class socket_half final : public half {
 public:
  explicit socket_half(bool sleeps) : sleeps_(sleeps), door_(::socket(AF_INET, SOCK_STREAM, 0)) {
    // Who asks may be elsewhere, and needs no door.
    ::sockaddr_in here = owner_address();
    ::sockaddr_in unused = loopback();
    if ((::bind(door_, reinterpret_cast<::sockaddr*>(&here), sizeof here) != 0 &&
         ::bind(door_, reinterpret_cast<::sockaddr*>(&unused), sizeof unused) != 0) ||
        ::listen(door_, 1) != 0) {
      throw std::runtime_error("no socket to listen on");
    }
  }
  ~socket_half() override {
    if (peer_ >= 0) ::close(peer_);
    ::close(door_);
  }

  std::vector<std::byte> address() override {
    ::sockaddr_in here = {};
    ::socklen_t size = sizeof here;
    ::getsockname(door_, reinterpret_cast<::sockaddr*>(&here), &size);
    const auto bytes = std::as_bytes(std::span(&here.sin_port, 1));
    return {bytes.begin(), bytes.end()};
  }
  void connect(const std::vector<std::byte>& peer, bool asks) override {
    if (asks) {
      ::sockaddr_in there = owner_address();
      std::memcpy(&there.sin_port, peer.data(), sizeof there.sin_port);
      peer_ = ::socket(AF_INET, SOCK_STREAM, 0);
      if (::connect(peer_, reinterpret_cast<::sockaddr*>(&there), sizeof there) != 0) {
        throw std::runtime_error("no connection of sockets");
      }
    } else {
      peer_ = ::accept(door_, nullptr, nullptr);
    }
    const int yes = 1;
    ::setsockopt(peer_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    const ::timeval nap{0, 10'000};  // so that its thread can be told to serve somebody else
    ::setsockopt(peer_, SOL_SOCKET, SO_RCVTIMEO, &nap, sizeof nap);
  }

  void begin(message_way, std::size_t size, unsigned) override {
    message_.resize(size);
    received_ = 0;
  }
  void send(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ::ssize_t sent = ::send(peer_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0) throw std::runtime_error("a socket's send failed");
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    }
  }
  unsigned unsent() const override { return 0; }
  unsigned poll() override {
    const ::ssize_t read = ::recv(peer_, message_.data() + received_, message_.size() - received_,
                                  sleeps_ ? 0 : MSG_DONTWAIT);
    if (read < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (read <= 0) throw std::runtime_error("a socket's receive failed");
    received_ += static_cast<std::size_t>(read);
    if (received_ < message_.size()) return 0;
    received_ = 0;
    return 1;
  }
  std::span<const std::byte> last() const override { return message_; }

 private:
  static ::sockaddr_in owner_address() {
    ::sockaddr_in address = loopback();
    ::inet_pton(AF_INET, tested_network().owner_address.c_str(), &address.sin_addr);
    return address;
  }
  static ::sockaddr_in loopback() {
    ::sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }

  bool sleeps_;
  int door_;
  int peer_ = -1;
  std::vector<std::byte> message_;
  std::size_t received_ = 0;
};

}  // namespace

std::unique_ptr<half> make_socket_half(bool sleeps) {
  return std::make_unique<socket_half>(sleeps);
}

}  // namespace ucx::benchmarks
