// Lines of a server's audit that a program writes: docs/reference/rules.md, "Audit".
#pragma once

#include <string>
#include <system_error>

#include "ucx/version.hpp"

namespace ucx {

class endpoint;

/// An event of a service that a program offers at a server's workers, as `pipe_broker` does.
struct audit_event {
  /// A word for what has happened, such as "meet".
  std::string event = {};
  /// The name that it was about.
  std::string name = {};
  /// The right that the peer asked for, such as "read".
  std::string access = {};
  /// No error: it was done. Else why it was refused.
  std::error_code outcome = {};
  /// A second peer that it was about, whose identity is told, too.
  const endpoint* other = nullptr;
};

/// Appends a line about `peer` to the audit of the server at this side. The line has the time, and
/// identity, address and number of the connection of `peer` and of `event.other`. Does nothing
/// without such a server, or without its option `audit_file`.
///
///     ucx::append_to_audit(question.peer(), {.event = "ask", .name = "weights"});
///
/// Lines of refusals, and about peers without an identity, are limited as those of the server are.
/// Lines that find no room are counted, which the next one tells.
///
/// Threads: safe from any thread, also in handlers.
/// Lifetime: `event.other`, until this returns.
/// Errors: none. A line that there is no memory for is lost.
UCXIO_EXPORT void append_to_audit(const endpoint& peer, const audit_event& event) noexcept;

}  // namespace ucx
