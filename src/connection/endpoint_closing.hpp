// How a connection is closed on this side: docs/architecture.md, "Closing".
#pragma once

#include <system_error>

#include "ucx/endpoint.hpp"

namespace ucx::detail {

class close_operation;
class endpoint_core;

/// Begins the end of a connection, once, and waits for it where that is asked for. The steps of the
/// end are the operation's. A part of the connection, under the worker's lock, but for `close()`.
class endpoint_closing {
 public:
  explicit endpoint_closing(endpoint_core& connection) noexcept : connection_(connection) {}
  endpoint_closing(const endpoint_closing&) = delete;
  endpoint_closing& operator=(const endpoint_closing&) = delete;

  bool has_begun() const noexcept { return has_begun_; }
  /// See endpoint::close; returns the outcome. Takes the lock itself.
  std::error_code close(close_mode mode);
  /// See endpoint::start_close: an operation, one reference the caller's; nothing where it is late.
  close_operation* start(close_mode mode);
  /// Whether the operation may go on is looked at, soon.
  void look() noexcept;
  /// Looks. Throws std::bad_alloc, and is to be asked again then.
  void step();
  /// For the operation: ends what is left, and tells why the connection was lost, if it was.
  std::error_code leave();
  /// For the same: it is over.
  void ended() noexcept;

 private:
  std::error_code close_at_once(close_mode mode);

  endpoint_core& connection_;
  close_operation* operation_ = nullptr;
  bool has_begun_ = false;
};

}  // namespace ucx::detail
