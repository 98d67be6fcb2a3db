// Keys by which two processes connect by TLS that have no token in common.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <system_error>

#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"
#include "ucx/socket_address.hpp"
#include "ucx/version.hpp"
#include "ucx/worker.hpp"

namespace ucx {

namespace detail {
class meeting_book;
}

/// Keys that a third process gave to both sides of a connection, as a server does that introduces
/// the ends of a pipe. They stand in for tokens: each lets one connection in, whatever tokens both
/// sides have. A key has 16 random bytes or more. The handshake proves that both sides have it, and
/// does not send it.
///
/// A key counts at the listeners of this object alone, and nothing else counts there: no token
/// does. On a context without TLS, and over a Unix socket in the clear, there are no keys:
/// listeners and connections are like others.
///
/// Threads: sharing one object is safe, but for the destructor and moves.
class UCXIO_EXPORT meeting_keys {
 public:
  explicit meeting_keys(const context& of);
  meeting_keys(meeting_keys&& other) noexcept;
  meeting_keys& operator=(meeting_keys&& other) noexcept;
  /// Forgets the keys. The listeners let no peer in from here on.
  ~meeting_keys();

  /// Returns whether the context has TLS. Else the keys do nothing.
  bool is_used() const noexcept { return book_ != nullptr; }

  /// Lets in one peer that has `key`, at the listeners of this object, within `limit`.
  /// Errors: invalid_argument (shorter than 16 bytes), not_supported (OpenSSL derives nothing from
  /// it).
  void expect(std::span<const std::byte> key, std::chrono::nanoseconds limit,
              std::error_code& ec = throws);

  /// Listens as a `listener` does, for peers that have a key of this object. `parent` is a worker
  /// of the context. No token is needed. Errors: those of `listener`.
  listener listen(const worker& parent, const socket_address& address,
                  listener_options options = {}, std::error_code& ec = throws) const;

  /// Connects as an `endpoint` does, and shows `key`. No token is shown, whatever happens.
  /// Errors: those of `endpoint` by socket address, and of `expect()`; permission_denied (the peer
  /// does not expect that key, or not any more).
  endpoint connect(const worker& parent, const socket_address& peer, std::span<const std::byte> key,
                   endpoint_options options = {}, std::error_code& ec = throws) const;

 private:
  std::shared_ptr<detail::meeting_book> book_;
};

}  // namespace ucx
