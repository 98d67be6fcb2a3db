// For one version: options that have another name now.
#pragma once

#include <concepts>
#include <optional>
#include <type_traits>
#include <utility>

#include "ucx/version.hpp"

namespace ucx::detail {

/// An option by its name of the version before. The option of the new name begins with its value.
/// It can only be initialised: to assign to it, or to read it, is an error.
template <class Value>
struct old_option {
  constexpr old_option() noexcept = default;
#if UCXIO_OLD_NAMES
  template <class Given>
  requires(!std::same_as<std::remove_cvref_t<Given>, old_option> &&
           std::convertible_to<Given, Value>)
      [[deprecated("the option has another name: CHANGELOG.md has a table")]] constexpr old_option(
          Given&& given)  // NOLINT(google-explicit-constructor): as the option itself
      : value(static_cast<Value>(std::forward<Given>(given))) {}
  template <class Given>
  requires(!std::same_as<std::remove_cvref_t<Given>, old_option> &&
           std::convertible_to<Given, Value>) old_option&
  operator=(Given&& given) = delete;
#endif

  /// Returns the value that the program gave to the old name, else `usual`.
  constexpr Value value_or(Value usual) { return value ? std::move(*value) : std::move(usual); }

  std::optional<Value> value = {};
};

}  // namespace ucx::detail
