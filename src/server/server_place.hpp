// Where a server listens, over what, and who could reach it there.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "ucx/context.hpp"
#include "ucx/server.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::detail {

class context_core;

/// The meaning of a server's options, before there is a context.
struct server_place {
  /// Without named transports a port has TLS, and on loopback a Unix socket beside it.
  /// Makes the user's own token, where no token is named. The server is to have TLS and a Unix
  /// socket beside it on loopback, or TLS and accepts other tokens. Without TLS in this build, or
  /// where the token can not be written, a server on loopback has the Unix socket alone.
  /// Errors: bad_address, host_not_found; not_secure (an address that is not loopback, without
  /// `insecure` or TLS), bad_configuration (also what needs UCX, which is not named, and what does
  /// not go together with both families), those of `ensure_own_token`.
  /// Over plain UCX, "[::]:port" and two addresses of one port mean both families, unless the
  /// options name the family of UCX's TCP.
  static result<server_place> make(const server_options& options);
  /// Returns the address that the text of `server_options::bind` means: IPv4 before IPv6, which UCX
  /// speaks only where it was told to. Errors: bad_address, host_not_found.
  static result<socket_address> address_of(const std::string& text);

  /// Makes the context, limited to the interface of `local` and to the machine's RDMA devices,
  /// unless the caller chose devices.
  result<ucx::context> make_context() const;
  /// Returns whether it serves both families.
  bool has_both_families() const noexcept { return !six.empty(); }
  /// Makes the context for clients of IPv6. Errors: bad_address (no interface has the address),
  /// not_supported (this machine has no address of IPv6, or UCX speaks none there), and those of
  /// `make_context()`.
  result<ucx::context> make_context_of_six() const;
  /// Returns the addresses at which this context listens. UCX's listener at the wildcard would take
  /// the port of IPv4, too, so each address of the machine has a listener. Errors: not_supported
  /// (there is none that UCX speaks, or there are too many).
  result<std::vector<socket_address>> addresses_of_six(const context_core& made) const;
  /// Returns all of that in words, for an error text.
  std::string text() const;
  /// Returns whether no interface but the one for loopback is used.
  bool is_local() const;

  socket_address local = {};  ///< Empty: it does not listen.
  /// The address of IPv6, with the port of `local`, which is of IPv4 then. Empty: there is one
  /// family.
  socket_address six = {};
  context_options context = {};
  bool insecure = false;
  bool is_by_default = false;  ///< The options name no transport, and it listens at a port.
  bool has_made_token = false;
  std::string complaint = {};  ///< Why it was not made; empty where nothing is to be told.
};

}  // namespace ucx::detail
