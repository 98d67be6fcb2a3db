// How a connection over a socket begins: dialled or accepted, the handshake of TLS, the preamble.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "carrier/carrier_endpoint.hpp"
#include "carrier/carrier_failure.hpp"
#include "carrier/carrier_listener.hpp"
#include "carrier/carrier_worker.hpp"
#include "carrier/meeting_book.hpp"
#include "carrier/socket_status.hpp"
#include "carrier/unix_trust.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::detail {
namespace {

/// The system takes so much that is not on its way yet: what comes behind it waits for no more.
constexpr int most_unsent = 256 << 10;
constexpr std::chrono::milliseconds until_next_dial{5};

void set_option(int descriptor, int level, int name, int value) noexcept {
  ::setsockopt(descriptor, level, name, &value, sizeof value);
}

}  // namespace

ucs_status_t carrier_endpoint::connect(carrier_worker& worker, const ucp_ep_params_t& params,
                                       carrier_endpoint*& made) {
  const sockaddr& to = *params.sockaddr.addr;
  owned_descriptor socket(::socket(to.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return socket_status(errno);
  if ((params.field_mask & UCP_EP_PARAM_FIELD_LOCAL_SOCK_ADDR) != 0) {
    set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    const ucs_sock_addr_t& from = params.local_sockaddr;
    if (::bind(socket.get(), from.addr, from.addrlen) != 0) return socket_status(errno);
  }
  tls_context* const tls = worker.tls(to.sa_family);
  const bool is_named = (params.field_mask & UCP_EP_PARAM_FIELD_NAME) != 0;
  std::string towards = is_named ? params.name : "";
  if (towards.empty() && tls != nullptr && tls->needs_address()) {
    std::error_code ec;
    const auto address = socket_address::from_native(&to, params.sockaddr.addrlen, ec);
    if (!ec) towards = to_string(address);
  }
  const meeting_secret* const key = given_in(params);
  std::unique_ptr<tls_session> session;
  if (tls != nullptr) session = key != nullptr ? tls->meet(*key) : tls->connect(towards);
  auto connecting =
      std::make_unique<carrier_endpoint>(worker, std::move(socket), std::move(session));
  connecting->take_handler(params);
  connecting->is_unix_ = to.sa_family == AF_UNIX;
  carrier_endpoint& self = *connecting;
  worker.add(std::move(connecting));
  made = &self;
  if (tls != nullptr && key == nullptr && !tls->can_connect(towards)) {
    self.fail(status_no_token);
    return UCS_OK;
  }
  if (self.dial(to, params.sockaddr.addrlen)) self.dialled();
  return UCS_OK;
}

/// Returns whether the system connects, or has connected. Else it has failed, or tries again: the
/// queue of a Unix socket is full.
bool carrier_endpoint::dial(const sockaddr& to, socklen_t size) {
  if (::connect(socket_.get(), &to, size) == 0 || errno == EINPROGRESS) {
    note_flow(to, size);
    return true;
  }
  if (!is_unix_ || errno != EAGAIN) {
    fail(socket_status(errno));
    return false;
  }
  if (!queue_is_full_) {
    auto place = std::make_unique<waiting_place>();
    std::memcpy(&place->to, &to, std::min<std::size_t>(size, sizeof place->to));
    place->size = size;
    place->timer = std::make_unique<carrier_timer>([this] { dial_again(); });
    const ucs_status_t watched =
        worker_.watch(place->timer->descriptor.get(), *place->timer, EPOLLIN);
    queue_is_full_ = std::move(place);
    if (watched != UCS_OK) {
      fail(watched);
      return false;
    }
  }
  queue_is_full_->timer->set(until_next_dial);
  return false;
}

/// The deadline is that of the caller, who closes the connection.
void carrier_endpoint::dial_again() noexcept {
  if (stage_ != stage::connecting || !queue_is_full_) return;
  const auto& to = reinterpret_cast<const sockaddr&>(queue_is_full_->to);
  if (!dial(to, queue_is_full_->size)) return;
  leave_queue();
  dialled();
}

void carrier_endpoint::leave_queue() noexcept {
  if (!queue_is_full_) return;
  worker_.forget(queue_is_full_->timer->descriptor.get());
  worker_.bury(std::move(queue_is_full_->timer));
  queue_is_full_.reset();
}

/// A Unix socket is connected at once. Nothing was said yet.
void carrier_endpoint::dialled() noexcept {
  if (is_unix_ && !worker_.trust->peer_of(socket_.get(), "the server is not trusted")) {
    return fail(status_foreign_server);
  }
  const ucs_status_t watched =
      worker_.watch(socket_.get(), *this, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
  if (watched != UCS_OK) fail(watched);
}

ucs_status_t carrier_endpoint::accept(carrier_worker& worker, carrier_caller& accepted,
                                      const ucp_ep_params_t& params, carrier_endpoint*& made) {
  auto open = std::make_unique<carrier_endpoint>(worker, std::move(accepted.socket),
                                                 std::move(accepted.tls));
  open->is_accepted_ = true;
  open->is_unix_ = accepted.address.ss_family == AF_UNIX;
  open->take_handler(params);
  open->identity_ = std::move(accepted.identity);
  carrier_endpoint& self = *open;
  worker.add(std::move(open));
  made = &self;
  self.greeted_ = true;
  self.connected();
  self.check_token();
  if (self.stage_ == stage::failed) return UCS_OK;
  worker.expect_end(self);
  const ucs_status_t watched =
      worker.watch(self.socket_.get(), self, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
  if (watched != UCS_OK) self.fail(watched);
  return UCS_OK;
}

void carrier_endpoint::set_options() const noexcept {
  const int socket = socket_.get();
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, most_unsent);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

/// The system has connected it, or could not.
void carrier_endpoint::connected() noexcept {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return fail(socket_status(error));
  if (!greeted_ && is_its_own_peer()) return fail(UCS_ERR_REJECTED);
  set_options();
  if (!tls_ || greeted_) return say_preamble();
  stage_ = stage::shaking;
  shake();
}

/// It reads all that there is. Nothing of this library is said before it is done.
void carrier_endpoint::shake() noexcept {
  readable_ = false;
  const tls_session::handshake made = tls_->shake(socket_.get());
  if (made == tls_session::handshake::failed) return fail(tls_->why());
  if (made != tls_session::handshake::done) return;
  say_preamble();
  if (stage_ == stage::open) worker_.expect_end(*this);
}

/// The socket is as good as empty, so it has room for a preamble.
void carrier_endpoint::say_preamble() noexcept {
  const ::iovec said{const_cast<std::byte*>(preamble::encoded.data()), preamble::size};
  const ::ssize_t sent =
      tls_ ? tls_->write(socket_.get(), {&said, 1}, worker_.cipher_scratch())
           : ::send(socket_.get(), preamble::encoded.data(), preamble::size, MSG_NOSIGNAL);
  if (sent != static_cast<::ssize_t>(preamble::size) || has_unsent()) {
    return fail(greeted_ ? UCS_ERR_CONNECTION_RESET : UCS_ERR_REJECTED);
  }
  stage_ = stage::open;
  writable_ = true;
  if (tls_) readable_ = true;  // the system tells of no bytes that were read with the handshake
}

/// Where no program listens, the system may connect a socket to itself. The port that it has chosen
/// for this side is then the one that is dialled.
bool carrier_endpoint::is_its_own_peer() const noexcept {
  sockaddr_storage ours = {};
  sockaddr_storage theirs = {};
  return local(ours) == UCS_OK && peer(theirs) == UCS_OK &&
         std::memcmp(&ours, &theirs, sizeof ours) == 0;
}

/// A listener may say that, and be gone, before this side has written anything.
bool carrier_endpoint::was_refused() const noexcept {
  std::array<std::byte, preamble::size> said = {};
  return !greeted_ && socket_ &&
         ::recv(socket_.get(), said.data(), said.size(), MSG_PEEK | MSG_DONTWAIT) ==
             static_cast<::ssize_t>(said.size()) &&
         preamble::look_at(said) == preamble::verdict::refused;
}

}  // namespace ucx::detail
