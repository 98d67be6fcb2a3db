// How an operation has ended, in words.
#pragma once

#include <system_error>

#include "base/result.hpp"
#include "ucx/request.hpp"
#include "worker/core_access.hpp"
#include "worker/operation.hpp"

namespace ucx::detail {

/// Waits for the operation, and returns why it failed if it has.
inline result<void> outcome_of(request started) {
  std::error_code ec;
  started.wait(ec);
  if (!ec) return {};
  const operation& failed = *core_access::get(started);
  return failure{ec, failure_text(failed), failed.ucx_status()};
}

}  // namespace ucx::detail
