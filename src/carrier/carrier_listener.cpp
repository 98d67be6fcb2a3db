#include "carrier/carrier_listener.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "base/logger.hpp"
#include "carrier/carrier_failure.hpp"
#include "carrier/carrier_worker.hpp"
#include "carrier/meeting_book.hpp"
#include "carrier/own_flows.hpp"
#include "carrier/socket_status.hpp"
#include "carrier/unix_trust.hpp"
#include "os/source_network.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::detail {
namespace {

constexpr int backlog = 1024;
/// Of a second, about strangers.
constexpr unsigned most_lines = 10;
/// Of one round: who is connected has a turn between.
constexpr unsigned most_let_in = 16;
/// So many descriptors are left for files and connections of this process's own.
constexpr int kept_descriptors = 32;
/// A step of a handshake is followed by so many times its length for those who are connected.
constexpr int share_of_others = 4;
/// But not longer. The longest step is a signature of this side by RSA.
constexpr std::chrono::milliseconds longest_pause{25};
/// A thread keeps the token of a guest that was invited.
constexpr std::chrono::milliseconds between_looks_for_token{10};
/// Until it looks again whether there are descriptors.
constexpr std::chrono::milliseconds pause_for_descriptors{100};

/// The system gives the lowest number that is free: so a high one says that few are.
bool is_scarce(int descriptor) noexcept {
  ::rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return false;
  const auto most = static_cast<std::int64_t>(limit.rlim_cur);
  return descriptor >= most - std::min<std::int64_t>(kept_descriptors, most / 4);
}

/// Returns how long this thread has worked: it may be elsewhere within a step.
std::chrono::nanoseconds work_of_thread() noexcept {
  std::timespec worked = {};
  if (::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &worked) != 0) return {};
  return std::chrono::seconds(worked.tv_sec) + std::chrono::nanoseconds(worked.tv_nsec);
}

/// Last words. Bytes that are left unread would have the system drop them.
void end_with(int socket, std::span<const std::byte> words) noexcept {
  if (!words.empty()) ::send(socket, words.data(), words.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  ::shutdown(socket, SHUT_WR);
  ::recv(socket, nullptr, std::size_t{1} << 20U, MSG_DONTWAIT | MSG_TRUNC);
}

/// The beginning of a handshake.
bool is_tls(std::span<const std::byte, preamble::size> said) noexcept {
  return said[0] == std::byte{0x16} && said[1] == std::byte{0x03};
}

std::shared_ptr<const peer_identity> unix_identity_of(const unix_peer& peer) {
  peer_identity made;
  made.user = peer.user;
  made.groups = peer.groups;
  made.groups.push_back(peer.group);
  made.is_owner = peer.user == ::geteuid();
  return std::make_shared<const peer_identity>(std::move(made));
}

/// Gives the file of a bound socket its mode: the mask of the process counted when it was made. By
/// a descriptor, because a link may be there by now.
int set_mode(const char* path, ::mode_t mode) noexcept {
  const owned_descriptor file(::open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct ::stat facts = {};
  if (!file || ::fstat(file.get(), &facts) != 0) return errno;
  if (!S_ISSOCK(facts.st_mode) || facts.st_uid != ::geteuid()) return EADDRINUSE;
  if ((facts.st_mode & 0777U) == mode) return 0;
  std::array<char, 40> name = {};
  std::snprintf(name.data(), name.size(), "/proc/self/fd/%d", file.get());
  return ::chmod(name.data(), mode) == 0 ? 0 : errno;
}

/// Listens at an address. The system gives the file of a Unix socket the mode of the socket.
int listen_at(int socket, const sockaddr& at, socklen_t size, ::mode_t file_mode) noexcept {
  const bool has_file = at.sa_family == AF_UNIX;
  if (has_file) ::fchmod(socket, file_mode);
  if (::bind(socket, &at, size) != 0) return errno;
  const auto& file = reinterpret_cast<const sockaddr_un&>(at);
  if (const int failed = has_file ? set_mode(file.sun_path, file_mode) : 0) return failed;
  return ::listen(socket, backlog) == 0 ? 0 : errno;
}

}  // namespace

/// Someone whose preamble has not come whole. By TLS it comes behind the handshake.
class carrier_listener::guest final : public carrier_source {
 public:
  guest(carrier_listener& host, owned_descriptor socket, const sockaddr_storage& address,
        std::unique_ptr<tls_session> tls, std::shared_ptr<const peer_identity> identity)
      : host_(host), since_(clock::now()), caller_(std::make_unique<carrier_caller>()) {
    caller_->socket = std::move(socket);
    caller_->address = address;
    caller_->tls = std::move(tls);
    caller_->identity = std::move(identity);
    source_ = source_network(reinterpret_cast<const ::sockaddr&>(address));
  }
  /// One that was dismissed in this round may be told of, too.
  void happened(std::uint32_t) noexcept override {
    if (caller_) host_.heard(*this);
  }

  /// Reads on. Returns whether the whole has come; `gone`: it will not.
  bool read(bool& gone) noexcept {
    const std::span<std::byte> rest = std::span(said_).subspan(come_);
    ::ssize_t read = 0;
    const ::iovec part{rest.data(), rest.size()};
    do {
      read = caller_->tls
                 ? caller_->tls->read(descriptor(), {&part, 1}, host_.worker_.cipher_scratch())
                 : ::recv(descriptor(), rest.data(), rest.size(), MSG_DONTWAIT);
    } while (read < 0 && errno == EINTR);
    gone = read == 0 || (read < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
    if (read > 0) come_ += static_cast<std::size_t>(read);
    return come_ == said_.size();
  }
  std::span<const std::byte, preamble::size> said() const noexcept { return said_; }
  clock::time_point since() const noexcept { return since_; }
  /// Where it comes from; empty for a Unix socket.
  const std::string& source() const noexcept { return source_; }
  int descriptor() const noexcept { return caller_->socket.get(); }
  const sockaddr_storage& address() const noexcept { return caller_->address; }
  tls_session* tls() const noexcept { return caller_->tls.get(); }
  bool is_shaken = false;     ///< The handshake of TLS is done.
  bool awaits_token = false;  ///< It was invited, and its token is being kept.
  std::unique_ptr<carrier_caller> leave() noexcept { return std::move(caller_); }

 private:
  carrier_listener& host_;
  clock::time_point since_;
  std::string source_;
  std::unique_ptr<carrier_caller> caller_;
  std::array<std::byte, preamble::size> said_ = {};
  std::size_t come_ = 0;
};

carrier_listener::carrier_listener(carrier_worker& worker, tls_context* tls,
                                   const ucp_listener_conn_handler_t& told) noexcept
    : worker_(worker), tls_(tls), told_(told) {}

carrier_listener::~carrier_listener() { stop(); }

void carrier_listener::stop() noexcept {
  if (std::exchange(stopped_, true)) return;
  if (socket_ && !paused_) worker_.forget(socket_.get());
  // A child of fork() may have it still.
  if (socket_) ::shutdown(socket_.get(), SHUT_RDWR);
  socket_ = owned_descriptor();
  if (timer_) {
    worker_.forget(timer_->descriptor.get());
    worker_.bury(std::move(timer_));
  }
  while (!guests_.empty()) dismiss(*guests_.front());
}

ucs_status_t carrier_listener::make(carrier_worker& worker, const ucp_listener_params_t& params,
                                    std::unique_ptr<carrier_listener>& made) {
  const sockaddr& at = *params.sockaddr.addr;
  tls_context* const tls = worker.tls(at.sa_family);
  std::shared_ptr<meeting_book> keys = given_in(params);
  if (tls != nullptr && !keys && !tls->can_accept()) return status_no_token;
  auto listening = std::make_unique<carrier_listener>(worker, tls, params.conn_handler);
  listening->keys_ = std::move(keys);
  listening->socket_ =
      owned_descriptor(::socket(at.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int socket = listening->socket_.get();
  if (socket < 0) return socket_status(errno);
  const int on = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (at.sa_family == AF_INET6) {
    // The wildcard of IPv6 is that of both.
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(at);
    const int only = IN6_IS_ADDR_UNSPECIFIED(&v6.sin6_addr) ? 0 : 1;
    ::setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
  }
  const int failed = listen_at(socket, at, params.sockaddr.addrlen, worker.trust->file_mode());
  if (failed != 0) return socket_status(failed);
  // It wakes the worker when the oldest guest has had its time, or a pause is over.
  listening->timer_ =
      std::make_unique<carrier_timer>([of = listening.get()] { of->look_at_time(); });
  if (!listening->timer_->descriptor) return socket_status(errno);
  ucs_status_t watched =
      worker.watch(listening->timer_->descriptor.get(), *listening->timer_, EPOLLIN);
  if (watched == UCS_OK) watched = worker.watch(socket, *listening, EPOLLIN);
  if (watched == UCS_OK && tls != nullptr) tls->watch();
  if (watched == UCS_OK) made = std::move(listening);
  return watched;
}

ucs_status_t carrier_listener::address(sockaddr_storage& told) const noexcept {
  socklen_t size = sizeof told;
  return ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&told), &size) == 0
             ? UCS_OK
             : socket_status(errno);
}

/// A handshake takes some rounds: those who come next wait in the system's queue meanwhile.
bool carrier_listener::is_full() const noexcept {
  return tls_ != nullptr && guests_.size() >= most_guests &&
         clock::now() - first_to_go().since() < shortest_handshake;
}

/// Returns the oldest of the source that has most, so that no source takes the places of others.
carrier_listener::guest& carrier_listener::first_to_go() const noexcept {
  guest* first = guests_.front().get();
  std::ptrdiff_t most = 0;
  for (const auto& each : guests_) {
    const auto of_source = std::count_if(guests_.begin(), guests_.end(), [&](const auto& other) {
      return other->source() == each->source();
    });
    if (of_source > most) {
      most = of_source;
      first = each.get();
    }
  }
  return *first;
}

void carrier_listener::happened(std::uint32_t) noexcept {
  if (stopped_) return;
  for (unsigned let = 0; let < most_let_in; ++let) {
    if (is_full()) return pause_for(shortest_handshake);
    sockaddr_storage from = {};
    socklen_t size = sizeof from;
    owned_descriptor came(::accept4(socket_.get(), reinterpret_cast<sockaddr*>(&from), &size,
                                    SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!came) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) pause();
      break;
    }
    if (is_scarce(came.get())) return pause();
    std::optional<unix_peer> peer;
    if (from.ss_family == AF_UNIX) {
      peer = worker_.trust->peer_of(came.get(), "a client is not let in");
      if (!peer) {
        ::send(came.get(), preamble::refusal.data(), preamble::size, MSG_NOSIGNAL | MSG_DONTWAIT);
        continue;
      }
    }
    try {
      if (guests_.size() >= most_guests) dismiss(first_to_go());
      std::unique_ptr<tls_session> tls;
      if (tls_ != nullptr) {
        tls_->refresh();
        tls = tls_->accept(keys_);
      }
      guests_.push_back(std::make_unique<guest>(*this, std::move(came), from, std::move(tls),
                                                peer ? unix_identity_of(*peer) : nullptr));
      guest& added = *guests_.back();
      if (worker_.watch(added.descriptor(), added, EPOLLIN | EPOLLRDHUP) != UCS_OK) dismiss(added);
    } catch (const std::bad_alloc&) {
      return pause();
    }
  }
  set_timer();
}

/// No descriptor or memory is left: callers wait, and the system does not tell of them meanwhile.
void carrier_listener::pause() noexcept { pause_for(pause_for_descriptors); }

void carrier_listener::pause_for(std::chrono::milliseconds time) noexcept {
  worker_.forget(socket_.get());
  paused_ = true;
  timer_->set(time);
}

void carrier_listener::set_timer() noexcept {
  if (paused_ || guests_.empty()) return;
  const bool awaits_token = std::any_of(guests_.begin(), guests_.end(),
                                        [](const auto& each) { return each->awaits_token; });
  const clock::duration left = guests_.front()->since() + longest_greeting - clock::now();
  timer_->set(awaits_token ? std::min<clock::duration>(left, between_looks_for_token) : left);
}

void carrier_listener::look_at_time() noexcept {
  if (stopped_) return;
  if (std::exchange(paused_, false) && worker_.watch(socket_.get(), *this, EPOLLIN) != UCS_OK) {
    paused_ = true;
    return timer_->set(pause_for_descriptors);
  }
  const clock::time_point last = clock::now() - longest_greeting;
  while (!guests_.empty() && guests_.front()->since() <= last) {
    tell(*guests_.front(), "it was silent, or slow, for 5 seconds");
    dismiss(*guests_.front());
  }
  for (auto each = guests_.begin(); each != guests_.end();) {
    guest& next = **each++;
    if (next.awaits_token) give_token(next);
  }
  set_timer();
}

/// A line of the log for a stranger that was not let in, of which there may be any number.
void carrier_listener::tell(const guest& of, std::string_view what) noexcept {
  if (of.tls() == nullptr) return;
  const clock::time_point now = clock::now();
  if (now - telling_since_ > std::chrono::seconds(1)) {
    telling_since_ = now;
    told_lines_ = 0;
  }
  if (++told_lines_ > most_lines) return;
  try {
    std::error_code ec;
    const auto from = socket_address::from_native(reinterpret_cast<const sockaddr*>(&of.address()),
                                                  sizeof of.address(), ec);
    tls_->log().write(log_level::warning,
                      "a peer at " + to_string(from) + " was not let in: " + std::string(what));
  } catch (const std::bad_alloc&) {  // it is not let in all the same
  }
}

/// A line of the log for a peer that has shown a token, or the key of a meeting.
void carrier_listener::note(const guest& of) const noexcept {
  logger& log = tls_->log();
  if (!log.writes(log_level::info)) return;
  try {
    std::error_code ec;
    const auto from = socket_address::from_native(reinterpret_cast<const sockaddr*>(&of.address()),
                                                  sizeof of.address(), ec);
    log.write(log_level::info, "a peer at " + to_string(from) + " was let in by the " +
                                   (of.tls()->has_met() ? std::string("key of a meeting")
                                    : !of.tls()->certificate().empty()
                                        ? "certificate \"" + of.tls()->certificate() + '"'
                                        : "token \"" + of.tls()->peer() + '"'));
  } catch (const std::bad_alloc&) {  // it is let in all the same
  }
}

/// Says who it is, once that is proven. Over a Unix socket it is known before.
void carrier_listener::identify(carrier_caller& caller) const {
  if (caller.identity) return;
  sockaddr_storage here = {};
  socklen_t size = sizeof here;
  peer_identity made;
  if (caller.tls) made.token = caller.tls->peer();
  if (caller.tls) made.certificate = caller.tls->certificate();
  if (::getsockname(caller.socket.get(), reinterpret_cast<sockaddr*>(&here), &size) == 0) {
    made.is_owner = own_flows::of_process().has(caller.address, here);
  }
  if (!made.is_owner && made.token.empty() && made.certificate.empty()) return;
  caller.identity = std::make_shared<const peer_identity>(std::move(made));
}

/// Returns whether a handshake may go on in this round.
bool carrier_listener::has_turn() noexcept {
  if (last_shaken_ == worker_.round()) return false;
  if (worker_.is_read_from() && clock::now() < next_shake_) return false;
  last_shaken_ = worker_.round();
  return true;
}

/// Goes on with the handshake. Returns whether it is done; the guest may be gone.
bool carrier_listener::shakes(guest& with) noexcept {
  if (!has_turn()) return false;  // the system tells of it again
  const std::chrono::nanoseconds before = work_of_thread();
  std::array<std::byte, preamble::size> begin = {};
  const ::ssize_t seen =
      ::recv(with.descriptor(), begin.data(), begin.size(), MSG_PEEK | MSG_DONTWAIT);
  if (seen == static_cast<::ssize_t>(begin.size()) &&
      preamble::look_at(begin) != preamble::verdict::foreign) {
    // The words of TLS for it, so that the peer can tell its user.
    constexpr std::array<unsigned char, 7> alert{0x15, 0x03, 0x03, 0, 2, 2, 70};
    end_with(with.descriptor(), std::as_bytes(std::span(alert)));
    tell(with, "it is a client in the clear (ucx+tcp://)");
    dismiss(with);
    return false;
  }
  const tls_session::handshake made = with.tls()->shake(with.descriptor());
  const std::chrono::nanoseconds step = work_of_thread() - before;
  next_shake_ = clock::now() + std::min<clock::duration>(share_of_others * step, longest_pause);
  if (made == tls_session::handshake::going_on) return false;
  with.is_shaken = made == tls_session::handshake::done;
  if (with.is_shaken) {
    if (!with.tls()->is_invited()) note(with);
    return true;
  }
  try {
    tell(with, with.tls()->words());
  } catch (const std::bad_alloc&) {  // as in `tell`
  }
  end_with(with.descriptor(), {});
  dismiss(with);
  return false;
}

/// A guest that was invited. It comes again by its token.
void carrier_listener::give_token(guest& to) noexcept {
  const tls_session::handshake made = to.tls()->redeem();
  if (made == tls_session::handshake::going_on) {
    if (!std::exchange(to.awaits_token, true)) worker_.forget(to.descriptor());
    return set_timer();
  }
  if (made == tls_session::handshake::done) {
    const ::iovec said{const_cast<std::byte*>(preamble::encoded.data()), preamble::size};
    to.tls()->write(to.descriptor(), {&said, 1}, worker_.cipher_scratch());
    to.tls()->end(to.descriptor());
  } else {
    try {
      tell(to, to.tls()->words());
    } catch (const std::bad_alloc&) {  // as in `tell`
    }
  }
  end_with(to.descriptor(), {});
  dismiss(to);
}

void carrier_listener::heard(guest& from) noexcept {
  if (from.awaits_token || (from.tls() != nullptr && !from.is_shaken && !shakes(from))) return;
  bool gone = false;
  const bool is_whole = from.read(gone);
  if (gone) return dismiss(from);
  if (!is_whole) return;
  const auto verdict = preamble::look_at(from.said());
  if (verdict != preamble::verdict::ours) {
    // A peer of another version, or one that speaks TLS, is told ours; no other program is told
    // anything.
    const bool is_other = verdict == preamble::verdict::other_version;
    if (is_other && from.tls() != nullptr) {
      const ::iovec said{const_cast<std::byte*>(preamble::encoded.data()), preamble::size};
      from.tls()->write(from.descriptor(), {&said, 1}, worker_.cipher_scratch());
      from.tls()->end(from.descriptor());
      end_with(from.descriptor(), {});
    } else if (from.tls() == nullptr && (is_other || is_tls(from.said()))) {
      end_with(from.descriptor(), preamble::encoded);
    }
    return dismiss(from);
  }
  if (from.tls() != nullptr && from.tls()->is_invited()) return give_token(from);
  worker_.forget(from.descriptor());
  std::unique_ptr<carrier_caller> caller = from.leave();
  dismiss(from);
  if (stopped_) return;
  try {
    identify(*caller);
  } catch (const std::bad_alloc&) {
    return;
  }
  told_.cb(reinterpret_cast<ucp_conn_request_h>(caller.release()), told_.arg);
}

void carrier_listener::dismiss(guest& gone) noexcept {
  const auto found = std::find_if(guests_.begin(), guests_.end(),
                                  [&](const auto& each) { return each.get() == &gone; });
  std::unique_ptr<carrier_source> owned = std::move(*found);
  guests_.erase(found);
  if (std::unique_ptr<carrier_caller> caller = gone.leave()) {
    worker_.forget(caller->socket.get());
  }
  worker_.bury(std::move(owned));
}

}  // namespace ucx::detail
