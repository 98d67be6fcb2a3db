// For functions that come in two forms: the one that throws makes the one that tells by a code.
#pragma once

#include <system_error>
#include <type_traits>
#include <utility>

#include "ucx/error.hpp"

namespace ucx::detail {

/// Runs `call`; returns what it gave, or `otherwise` when it threw an `error`, and why in `ec`.
template <class Result, class Call>
Result or_code(std::error_code& ec, Result otherwise, Call&& call) {
  ec.clear();
  try {
    return std::forward<Call>(call)();
  } catch (const error& failed) {
    ec = failed.code();
    return otherwise;
  }
}

/// The same with `Result()` otherwise, or nothing where `call` returns nothing.
template <class Call>
auto or_code(std::error_code& ec, Call&& call) {
  using result = std::invoke_result_t<Call>;
  if constexpr (std::is_void_v<result>) {
    or_code(ec, true, [&] {
      std::forward<Call>(call)();
      return true;
    });
  } else {
    return or_code(ec, result(), std::forward<Call>(call));
  }
}

}  // namespace ucx::detail
