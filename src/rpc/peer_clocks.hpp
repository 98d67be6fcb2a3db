// The stamps of peers, on their way into a clock of the program's.
#pragma once

#include <cstddef>
#include <span>

#include "base/log_first_n.hpp"
#include "ucx/hybrid_clock.hpp"

namespace ucx::detail {

class endpoint_core;

/// Warns of peers whose clocks are too far ahead: once for each connection, of the first few. A
/// part of the worker.
class peer_clocks {
 public:
  /// Returns when a message with this head came, by `clock`. Takes the worker's lock where it has
  /// to warn.
  static clock_stamp came(hybrid_clock& clock, std::span<const std::byte> head,
                          endpoint_core& from) noexcept;

 private:
  log_first_n warned_;
};

}  // namespace ucx::detail
