// A second attempt over a shared connection.
#pragma once

#include <system_error>

#include "ucx/error.hpp"

namespace ucx::detail {

/// Calls `attempt`, and once more where the connection was lost before anybody looked at it: the
/// server may be there again.
template <class Attempt>
auto twice_where_lost(Attempt&& attempt) {
  try {
    return attempt();
  } catch (const error& failed) {
    if (failed.code() != std::errc::connection_reset) throw;
  }
  return attempt();
}

}  // namespace ucx::detail
