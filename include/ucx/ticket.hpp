// Tickets by which a process acts for a client of a server: docs/reference/rules.md, "Agents".
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "ucx/access_rules.hpp"
#include "ucx/client.hpp"
#include "ucx/client_options.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/request.hpp"
#include "ucx/url.hpp"
#include "ucx/version.hpp"

namespace ucx {

/// A secret by which a second process acts for a client of a server. A connection that shows it may
/// do what the rules allow to both: a ticket never adds a right. So also with pipes, and where
/// services ask `endpoint::is_allowed()`. The connection ends with that of the client.
///
/// A ticket counts once, at the server that took it, while the client is connected. Give it to the
/// process that is to act, and to no other. Where that acts for several clients, lend what
/// `bound_to()` returns, and have it show the same. Else one client could have it show the ticket
/// of another.
/// Threads: a value.
class UCXIO_EXPORT ticket {
 public:
  static constexpr std::size_t size = 16;

  /// Draws one at random. Errors: those of the system (throws `ucx::error`, io_error).
  ticket();
  /// Makes one of bytes that are random, and known to both sides, such as
  /// `pipe_streambuf::meeting_key()`.
  explicit ticket(std::span<const std::byte, size> secret) noexcept;

  /// Reads what `text()` has returned. Errors: invalid_argument; what is returned then, no server
  /// takes.
  static ticket parse(std::string_view text, std::error_code& ec = throws);
  /// Returns the secret as 32 hexadecimal digits.
  std::string text() const;

  /// Returns the ticket that a conversation makes of this one, by the key that only its two sides
  /// have: `pipe_streambuf::meeting_key()`. A client tells the other side this ticket, and lends
  /// the one that is returned. In a conversation with another client it becomes another ticket.
  /// Errors: invalid_argument (the key has less than 16 bytes), not_supported (built without
  /// OpenSSL).
  ticket bound_to(std::span<const std::byte> key, std::error_code& ec = throws) const;

  /// Has the server of `by` take the ticket, for that client.
  /// Errors: not_supported (a server of a version that knows no tickets), permission_denied (`by`
  /// acts for another client), busy (64 tickets were not shown), already_exists, invalid_argument
  /// (all bits are zero), closed (there is no client); those of a client's questions.
  void lend(client& by, const io_options& options = {}, std::error_code& ec = throws) const;

  /// Has the server at this side take the ticket for two clients, as a broker does that gives a key
  /// to both. It counts while both have the right for the name. A service at the server's workers
  /// calls this, from any thread, also in handlers.
  /// Errors: not_supported (there is no server at this side), closed_by_peer (a client has left),
  /// busy (a client has 64 tickets that were not shown), already_exists, invalid_argument (all bits
  /// are zero), closed (there is no connection), forked_child.
  void expect(const endpoint& one, const endpoint& other, access_right needed,
              std::string_view name, std::error_code& ec = throws) const;

  /// Connects, and shows the ticket to whatever server the URL leads to. The client can not connect
  /// again.
  /// Errors: those of `client`; permission_denied (the server does not take the ticket, or not any
  /// more), not_supported (a server of a version that knows no tickets).
  client connect(const url& server, const client_options& options = {},
                 std::error_code& ec = throws) const;

 private:
  std::array<std::byte, size> secret_;
};

}  // namespace ucx
