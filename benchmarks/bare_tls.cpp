#include "bare_tls.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "network.hpp"
#include "raw_ucx.hpp"

namespace ucx::benchmarks {
namespace {

constexpr std::size_t batch = std::size_t{256} << 10U;
constexpr std::array<unsigned char, 32> key{1, 2, 3, 4, 5, 6, 7, 8};
constexpr const char* name = "benchmark";

template <class T>
struct freed_by_openssl {
  void operator()(SSL_CTX* of) const noexcept { SSL_CTX_free(of); }
  void operator()(SSL* of) const noexcept { SSL_free(of); }
};
template <class T>
using owned = std::unique_ptr<T, freed_by_openssl<T>>;

void require(bool is_so, const char* what) {
  if (!is_so) throw std::runtime_error(std::string("bare TLS: ") + what);
}

unsigned give_key(std::span<unsigned char> into) {
  std::copy(key.begin(), key.end(), into.begin());
  return key.size();
}

/// The settings that the carrier has, too.
owned<SSL_CTX> make_context(bool is_owner) {
  owned<SSL_CTX> made(SSL_CTX_new(is_owner ? TLS_server_method() : TLS_client_method()));
  require(made != nullptr, "no context");
  SSL_CTX* const at = made.get();
  require(SSL_CTX_set_min_proto_version(at, TLS1_3_VERSION) == 1 &&
              SSL_CTX_set_ciphersuites(at, "TLS_AES_128_GCM_SHA256") == 1 &&
              SSL_CTX_set1_groups_list(at, "X25519") == 1 && SSL_CTX_set_num_tickets(at, 0) == 1,
          "no such cipher");
  SSL_CTX_set_mode(at, SSL_MODE_AUTO_RETRY);
  SSL_CTX_set_psk_server_callback(
      at, [](SSL*, const char*, unsigned char* into, unsigned size) -> unsigned {
        return give_key({into, size});
      });
  SSL_CTX_set_psk_client_callback(at,
                                  [](SSL*, const char*, char* who, unsigned who_size,
                                     unsigned char* into, unsigned size) -> unsigned {
                                    std::snprintf(who, who_size, "%s", name);
                                    return give_key({into, size});
                                  });
  return made;
}

/// The socket of a connection whose records go and come in batches.
class batched_socket {
 public:
  explicit batched_socket(int socket) noexcept : socket_(socket) {}

  int read(std::span<char> into) {
    if (begin_ == end_) {
      const ::ssize_t came = ::recv(socket_, came_.data(), came_.size(), 0);
      if (came <= 0) return static_cast<int>(came);
      begin_ = 0;
      end_ = static_cast<std::size_t>(came);
    }
    const std::size_t given = std::min(into.size(), end_ - begin_);
    std::memcpy(into.data(), came_.data() + begin_, given);
    begin_ += given;
    return static_cast<int>(given);
  }
  int write(std::span<const char> from) {
    waiting_.insert(waiting_.end(), from.begin(), from.end());
    if (waiting_.size() >= batch && !push()) return -1;
    return static_cast<int>(from.size());
  }
  bool push() {
    const std::size_t size = waiting_.size();
    const bool sent =
        ::send(socket_, waiting_.data(), size, MSG_NOSIGNAL) == static_cast<::ssize_t>(size);
    waiting_.clear();
    return sent;
  }

 private:
  int socket_;
  std::vector<char> came_ = std::vector<char>(batch);
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::vector<char> waiting_;
};

batched_socket& socket_of(BIO* bio) { return *static_cast<batched_socket*>(BIO_get_data(bio)); }

BIO* make_bio(batched_socket& of) {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* const made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "batches");
    require(made != nullptr, "no BIO");
    BIO_meth_set_read(made, [](BIO* bio, char* into, int size) {
      return socket_of(bio).read({into, static_cast<std::size_t>(size)});
    });
    BIO_meth_set_write(made, [](BIO* bio, const char* from, int size) {
      return socket_of(bio).write({from, static_cast<std::size_t>(size)});
    });
    BIO_meth_set_ctrl(made, [](BIO* bio, int command, long, void*) -> long {
      return command == BIO_CTRL_FLUSH && socket_of(bio).push() ? 1 : 0;
    });
    return made;
  }();
  BIO* const made = BIO_new(method);
  require(made != nullptr, "no BIO");
  BIO_set_data(made, &of);
  BIO_set_init(made, 1);
  return made;
}

class tls_connection final : public byte_connection {
 public:
  /// Takes the socket, and shakes hands.
  tls_connection(int socket, SSL_CTX* context, tls_loop loop, bool is_owner)
      : socket_(socket), batches_(socket), loop_(loop), ssl_(SSL_new(context)) {
    const int yes = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    require(ssl_ != nullptr, "no session");
    SSL* const at = ssl_.get();
    if (loop == tls_loop::batches) {
      BIO* const both = make_bio(batches_);
      SSL_set_bio(at, both, both);
    } else {
      require(SSL_set_fd(at, socket_) == 1, "no BIO of a socket");
    }
    if (loop == tls_loop::read_ahead) {
      SSL_set_read_ahead(at, 1);
      SSL_set_default_read_buffer_len(at, batch);
    }
    require((is_owner ? SSL_accept(at) : SSL_connect(at)) == 1, "the handshake failed");
  }
  ~tls_connection() override { ::close(socket_); }

  void read(std::span<std::byte> into) override {
    while (!into.empty()) {
      std::size_t came = 0;
      require(SSL_read_ex(ssl_.get(), into.data(), into.size(), &came) == 1, "a socket ended");
      into = into.subspan(came);
    }
  }
  void write(std::span<const std::byte> from) override {
    std::size_t sent = 0;
    require(SSL_write_ex(ssl_.get(), from.data(), from.size(), &sent) == 1 && sent == from.size(),
            "a socket ended");
  }
  void push() override {
    if (loop_ == tls_loop::batches) require(batches_.push(), "a socket ended");
  }

 private:
  int socket_;
  batched_socket batches_;
  tls_loop loop_;
  owned<SSL> ssl_;
};

void answer(byte_connection& by, std::span<std::byte> memory) {
  for (;;) {
    socket_question asked;
    by.read(std::as_writable_bytes(std::span(&asked, 1)));
    if (asked.verb == socket_question::flush) {
      const std::uint64_t zero = 0;
      by.write(std::as_bytes(std::span(&zero, 1)));
      by.push();
      continue;
    }
    if (asked.offset > memory.size() || asked.length > memory.size() - asked.offset) return;
    const auto place = memory.subspan(asked.offset, asked.length);
    if (asked.verb == socket_question::write) {
      by.read(place);
    } else {
      by.write(place);
      by.push();
    }
  }
}

void serve_one(int socket, SSL_CTX* context, std::span<std::byte> memory) noexcept {
  try {
    tls_loop loop = tls_loop::records;
    if (::recv(socket, &loop, sizeof loop, MSG_WAITALL) != sizeof loop) {
      ::close(socket);
      return;
    }
    tls_connection by(socket, context, loop, true);
    answer(by, memory);
  } catch (const std::exception&) {  // the client has left
  }
}

/// Serves until the other end of `quit` is closed.
void serve(std::size_t size, int tell, int quit) {
  std::vector<std::byte> memory(size);
  fill_pattern(memory);
  const owned<SSL_CTX> context = make_context(true);
  const int door = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ::sockaddr_in here = {};
  here.sin_family = AF_INET;
  ::inet_pton(AF_INET, tested_network().owner_address.c_str(), &here.sin_addr);
  ::socklen_t length = sizeof here;
  require(::bind(door, reinterpret_cast<::sockaddr*>(&here), sizeof here) == 0 &&
              ::listen(door, 16) == 0 &&
              ::getsockname(door, reinterpret_cast<::sockaddr*>(&here), &length) == 0 &&
              ::write(tell, &here, sizeof here) == sizeof here,
          "no socket to listen on");
  std::array<::pollfd, 2> watched{::pollfd{door, POLLIN, 0}, ::pollfd{quit, POLLIN, 0}};
  while (::poll(watched.data(), watched.size(), -1) > 0 && watched[1].revents == 0) {
    const int socket = ::accept(door, nullptr, nullptr);
    if (socket < 0) continue;
    // Not joined: it ends with the process, or with its connection.
    std::thread([socket, &memory, &context] { serve_one(socket, context.get(), memory); }).detach();
  }
  ::_exit(0);  // the threads still use the memory
}

}  // namespace

bare_tls_owner::bare_tls_owner(std::size_t size) : size_(size) {
  std::array<int, 2> told = {};
  std::array<int, 2> quit = {};
  require(::pipe(told.data()) == 0 && ::pipe(quit.data()) == 0, "no pipe");
  child_ = ::fork();
  require(child_ >= 0, "no process for the owner");
  if (child_ == 0) {
    ::close(told[0]);
    ::close(quit[1]);
    try {
      become_owner();
      serve(size, told[1], quit[0]);
    } catch (const std::exception& failure) {
      std::fprintf(stderr, "%s\n", failure.what());
      ::_exit(1);
    }
  }
  ::close(told[1]);
  ::close(quit[0]);
  quit_ = quit[1];
  const bool heard = ::read(told[0], &address_, sizeof address_) == sizeof address_;
  ::close(told[0]);
  require(heard, "the owner has died");
}

bare_tls_owner::~bare_tls_owner() {
  ::close(quit_);
  ::waitpid(child_, nullptr, 0);
}

std::unique_ptr<byte_connection> connect_tls(const ::sockaddr_in& owner, tls_loop loop) {
  static const owned<SSL_CTX> context = make_context(false);
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(socket, reinterpret_cast<const ::sockaddr*>(&owner), sizeof owner) != 0 ||
      ::send(socket, &loop, sizeof loop, MSG_NOSIGNAL) != sizeof loop) {
    ::close(socket);
    require(false, "no connection");
  }
  return std::make_unique<tls_connection>(socket, context.get(), loop, false);
}

}  // namespace ucx::benchmarks
