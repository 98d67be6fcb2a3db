// A second attempt over a shared connection.
#pragma once

#include <system_error>

namespace ucx::detail {

/// Calls `attempt`, which returns a `result`, and once more where the connection was lost before
/// anybody looked at it: the server may be there again.
template <class Attempt>
auto retry_once_on_reset(Attempt&& attempt) {
  auto made = attempt();
  if (made || made.why().code != std::errc::connection_reset) return made;
  return attempt();
}

}  // namespace ucx::detail
