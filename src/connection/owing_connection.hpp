// The debts of connections to their worker's rounds: written down in themselves, which takes no
// memory.
#pragma once

#include "base/intrusive_list.hpp"

namespace ucx::detail {

struct deferred_destroy_tag {};
struct left_tag {};
struct owing_tag {};

/// A connection, as it stands in the lines of the worker's connection table. One is of connections
/// that owe something. Another is of those that have no holder any more, and that UCX does not let
/// go of yet. The last is of those whose endpoint of UCX's is left to it.
struct owing_connection : list_hook<owing_tag>,
                          list_hook<deferred_destroy_tag>,
                          list_hook<left_tag> {
  static constexpr unsigned to_close = 1;  ///< A look at what closes it.
  static constexpr unsigned to_send = 2;   ///< Messages that wait for room, or for a fence.
  static constexpr unsigned to_part = 4;   ///< From a peer that was declined.
  static constexpr unsigned to_retire = 8;
  static constexpr unsigned to_tell = 16;  ///< An end that its observer could not be told of.
  static constexpr unsigned to_drop = 32;  ///< An endpoint that was left to UCX.

 protected:
  owing_connection() noexcept = default;
  ~owing_connection() = default;
  unsigned owed_ = 0;  // of these
};

}  // namespace ucx::detail
