#include "socket_client.hpp"

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "raw_ucx.hpp"
#include "seconds_since.hpp"

namespace ucx::benchmarks {
namespace {

using clock = std::chrono::steady_clock;

/// Bytes of one question: the next is asked before they have come, so that the owner never waits.
constexpr std::size_t chunk = std::size_t{4} << 20U;

class plain_connection final : public byte_connection {
 public:
  explicit plain_connection(const ::sockaddr_in& owner)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (::connect(socket_, reinterpret_cast<const ::sockaddr*>(&owner), sizeof owner) != 0) {
      ::close(socket_);
      throw std::runtime_error("no connection of sockets");
    }
    const int yes = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  }
  ~plain_connection() override { ::close(socket_); }

  void read(std::span<std::byte> into) override {
    const ::ssize_t count = ::recv(socket_, into.data(), into.size(), MSG_WAITALL);
    if (count != static_cast<::ssize_t>(into.size())) throw std::runtime_error("a socket ended");
  }
  void write(std::span<const std::byte> from) override {
    const ::ssize_t count = ::send(socket_, from.data(), from.size(), MSG_NOSIGNAL);
    if (count != static_cast<::ssize_t>(from.size())) throw std::runtime_error("a socket ended");
  }
  void push() override {}

 private:
  int socket_;
};

}  // namespace

std::unique_ptr<byte_connection> connect_socket(const ::sockaddr_in& owner) {
  return std::make_unique<plain_connection>(owner);
}

void socket_client::ask(std::uint64_t verb, std::uint64_t offset, std::uint64_t length) {
  const socket_question question{verb, offset, length};
  connection_->write(std::as_bytes(std::span(&question, 1)));
  if (verb != socket_question::write) connection_->push();
}

void socket_client::flush() {
  ask(socket_question::flush, 0, 0);
  std::uint64_t zero = 1;
  connection_->read(std::as_writable_bytes(std::span(&zero, 1)));
  if (zero != 0) throw std::runtime_error("a socket's bytes are out of step");
}

void socket_client::read_one(std::uint64_t offset, std::span<std::byte> into) {
  ask(socket_question::read, offset, into.size());
  connection_->read(into);
}

double socket_client::read(std::size_t call, std::chrono::nanoseconds duration) {
  into_.resize(std::max(into_.size(), call));
  const std::size_t calls_of_chunk = std::max<std::size_t>(1, chunk / call);
  const std::size_t length = calls_of_chunk * call;
  const std::size_t rounds = size_ / length;
  const clock::time_point start = clock::now();
  const clock::time_point until = start + duration;
  std::uint64_t asked = 0;
  std::uint64_t taken = 0;
  const auto ask_next = [&] { ask(socket_question::read, asked++ % rounds * length, length); };
  ask_next();
  do {
    if (clock::now() < until) ask_next();
    std::uint64_t offset = taken++ % rounds * length;
    for (std::size_t i = 0; i < calls_of_chunk; ++i, offset += call) {
      connection_->read(std::span(into_).first(call));
      check_pattern(std::span(into_).first(call), offset);
    }
  } while (taken != asked);
  return static_cast<double>(taken * calls_of_chunk) / seconds_since(start);
}

double socket_client::write(std::size_t call, std::span<const std::byte> from,
                            std::chrono::nanoseconds duration) {
  const std::size_t calls_of_chunk = std::max<std::size_t>(1, chunk / call);
  const std::size_t length = calls_of_chunk * call;
  const std::size_t rounds = size_ / length;
  const clock::time_point start = clock::now();
  const clock::time_point until = start + duration;
  std::uint64_t given = 0;
  std::uint64_t offset = 0;
  do {
    offset = given++ % rounds * length;
    ask(socket_question::write, offset, length);
    for (std::size_t i = 0; i < calls_of_chunk; ++i) connection_->write(from.first(call));
  } while (clock::now() < until);
  flush();
  const double rate = static_cast<double>(given * calls_of_chunk) / seconds_since(start);
  // The last call's bytes must be there.
  into_.resize(std::max(into_.size(), call));
  read_one(offset + length - call, std::span(into_).first(call));
  if (std::memcmp(into_.data(), from.data(), call) != 0) {
    throw std::runtime_error("what was written by a socket is not there");
  }
  return rate;
}

}  // namespace ucx::benchmarks
