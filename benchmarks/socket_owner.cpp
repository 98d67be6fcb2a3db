#include "socket_owner.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <exception>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include "network.hpp"
#include "processor_time.hpp"
#include "raw_ucx.hpp"

namespace ucx::benchmarks {
namespace {

constexpr std::size_t piece = std::size_t{1} << 20U;

bool read_all(int socket, std::span<std::byte> into) {
  while (!into.empty()) {
    const ::ssize_t count = ::recv(socket, into.data(), into.size(), 0);
    if (count <= 0) return false;
    into = into.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

bool write_all(int socket, std::span<const std::byte> from) {
  while (!from.empty()) {
    const ::ssize_t count = ::send(socket, from.data(), std::min(piece, from.size()), MSG_NOSIGNAL);
    if (count <= 0) return false;
    from = from.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

void answer(int socket, std::span<std::byte> memory) {
  const int yes = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  socket_question asked;
  while (read_all(socket, std::as_writable_bytes(std::span(&asked, 1)))) {
    if (asked.verb == socket_question::flush) {
      const std::uint64_t zero = 0;
      if (!write_all(socket, std::as_bytes(std::span(&zero, 1)))) break;
      continue;
    }
    if (asked.offset > memory.size() || asked.length > memory.size() - asked.offset) break;
    const auto place = memory.subspan(asked.offset, asked.length);
    if (asked.verb == socket_question::read ? !write_all(socket, place)
                                            : !read_all(socket, place)) {
      break;
    }
  }
  ::close(socket);
}

/// Serves until the other end of `quit` is closed.
void serve(std::size_t size, int tell, int quit) {
  std::vector<std::byte> memory(size);
  fill_pattern(memory);
  const int door = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ::sockaddr_in here = {};
  here.sin_family = AF_INET;
  ::inet_pton(AF_INET, tested_network().owner_address.c_str(), &here.sin_addr);
  ::socklen_t length = sizeof here;
  if (::bind(door, reinterpret_cast<::sockaddr*>(&here), sizeof here) != 0 ||
      ::listen(door, 16) != 0 ||
      ::getsockname(door, reinterpret_cast<::sockaddr*>(&here), &length) != 0 ||
      ::write(tell, &here, sizeof here) != sizeof here) {
    throw std::runtime_error("no socket to listen on");
  }
  std::array<::pollfd, 2> watched{::pollfd{door, POLLIN, 0}, ::pollfd{quit, POLLIN, 0}};
  while (::poll(watched.data(), watched.size(), -1) > 0 && watched[1].revents == 0) {
    const int socket = ::accept(door, nullptr, nullptr);
    // Not joined: it ends with the process, or with its connection.
    if (socket >= 0) std::thread([socket, &memory] { answer(socket, memory); }).detach();
  }
  ::_exit(0);  // the threads still use the memory
}

}  // namespace

socket_owner::socket_owner(std::size_t size) : size_(size) {
  std::array<int, 2> told = {};
  std::array<int, 2> quit = {};
  if (::pipe(told.data()) != 0 || ::pipe(quit.data()) != 0) throw std::runtime_error("no pipe");
  child_ = ::fork();
  if (child_ < 0) throw std::runtime_error("no process for the sockets' owner");
  if (child_ == 0) {
    ::close(told[0]);
    ::close(quit[1]);
    try {
      become_owner();
      serve(size, told[1], quit[0]);
    } catch (const std::exception& failure) {
      std::fprintf(stderr, "the sockets' owner: %s\n", failure.what());
      ::_exit(1);
    }
  }
  ::close(told[1]);
  ::close(quit[0]);
  quit_ = quit[1];
  const bool heard = ::read(told[0], &address_, sizeof address_) == sizeof address_;
  ::close(told[0]);
  if (!heard) throw std::runtime_error("the sockets' owner has died");
}

socket_owner::~socket_owner() {
  ::close(quit_);
  ::waitpid(child_, nullptr, 0);
}

std::chrono::nanoseconds socket_owner::processor_time() const { return processor_time_of(child_); }

}  // namespace ucx::benchmarks
