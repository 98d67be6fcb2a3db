// What a call that may fail returns: what was asked for, or why there is none of it.
//
// A function that may fail returns a `result`; a public one ends it by `or_throw()` in its form
// that throws, and by `or_tell(ec)` in its form that does not: both forms are one call of the same
// function.
#pragma once

#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>

#include "ucx/error.hpp"

namespace ucx::detail {

/// Why a call failed: the code, by which callers decide, and in words what was tried, on what, and
/// what UCX or the system said of it.
struct failure {
  std::error_code code;
  std::string text = {};

  [[noreturn]] void raise() const { throw error(code, text); }
};

/// A value, or a failure. As `std::expected` of C++23, with the two endings of public functions.
template <class T>
class [[nodiscard]] result {
 public:
  template <class From = T>
  requires(std::is_constructible_v<T, From&&> &&
           !std::is_same_v<std::remove_cvref_t<From>, result> &&
           !std::is_same_v<std::remove_cvref_t<From>, failure>) result(From&& value)
      : held_(std::in_place_index<0>, std::forward<From>(value)) {}
  result(failure why) noexcept : held_(std::in_place_index<1>, std::move(why)) {}

  explicit operator bool() const noexcept { return held_.index() == 0; }

  /// REQUIRES: a value.
  T& operator*() & noexcept { return *std::get_if<0>(&held_); }
  const T& operator*() const& noexcept { return *std::get_if<0>(&held_); }
  T&& operator*() && noexcept { return std::move(*std::get_if<0>(&held_)); }
  T* operator->() noexcept { return std::get_if<0>(&held_); }
  const T* operator->() const noexcept { return std::get_if<0>(&held_); }

  /// REQUIRES: no value.
  failure& why() & noexcept { return *std::get_if<1>(&held_); }
  const failure& why() const& noexcept { return *std::get_if<1>(&held_); }
  failure&& why() && noexcept { return std::move(*std::get_if<1>(&held_)); }

  /// Returns the value, or throws the `error` of the failure.
  T or_throw() && {
    if (!*this) why().raise();
    return *std::move(*this);
  }
  /// Returns the value and clears `ec`, or says in `ec` why there is none and returns `otherwise`.
  T or_tell(std::error_code& ec, T otherwise = T()) && {
    ec = *this ? std::error_code() : why().code;
    return *this ? *std::move(*this) : std::move(otherwise);
  }

 private:
  std::variant<T, failure> held_;
};

/// Of a call that returns nothing: done, or why not.
template <>
class [[nodiscard]] result<void> {
 public:
  result() noexcept = default;
  result(failure why) noexcept : why_(std::move(why)) {}

  explicit operator bool() const noexcept { return !why_; }

  /// REQUIRES: it failed.
  failure& why() & noexcept { return *why_; }
  const failure& why() const& noexcept { return *why_; }
  failure&& why() && noexcept { return *std::move(why_); }

  void or_throw() const {
    if (why_) why_->raise();
  }
  void or_tell(std::error_code& ec) const noexcept { ec = why_ ? why_->code : std::error_code(); }

 private:
  std::optional<failure> why_;
};

}  // namespace ucx::detail
