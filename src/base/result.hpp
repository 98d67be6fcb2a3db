// The result of a call that may fail: a value, or why there is none.
//
// A function that may fail returns a `result`; a public one ends it by `or_end(ec)`, which throws
// or tells. One that knows only a code until then ends by `end_with`. Where there is no value a
// bare code may be returned.
//
// A `result` costs too much for code that runs in each access, so that code takes an
// `std::error_code&`. Such code starts operations (`start_read`, `transfer_path`), finds the target
// of a peer's access (`region_service::admit`), and finds whose a span is (`is_on_device`).
#pragma once

#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>

#include "ucx/error.hpp"

namespace ucx::detail {

/// Why a call failed. Callers decide by the code. The text says what was tried, on what, and what
/// UCX or the system said of it.
struct failure {
  std::error_code code;
  std::string text = {};
  std::optional<int> ucx_status = {};  ///< UCX's own, where it was UCX that failed.
  std::error_code cause = {};          ///< That of a function of the peer, which threw.

  [[noreturn]] void raise() const { throw error(code, text, ucx_status, cause); }
};

/// A value, or a failure. As `std::expected` of C++23, with the endings of public functions.
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
  /// Ends a public function: as `or_throw()` where the caller gave no code, else as `or_tell()`.
  T or_end(std::error_code& ec, T otherwise = T()) && {
    if (&ec == &throws) return std::move(*this).or_throw();
    return std::move(*this).or_tell(ec, std::move(otherwise));
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
  void or_end(std::error_code& ec) const {
    if (&ec == &throws) return or_throw();
    or_tell(ec);
  }

 private:
  std::optional<failure> why_;
};

/// Ends a public function whose outcome is `outcome`: throws where the caller gave no code, and it
/// failed. `text` and `ucx_status` make those of the error, and are called only then.
template <class Text, class Status>
void end_with(std::error_code outcome, std::error_code& ec, Text text, Status ucx_status) {
  if (&ec != &throws) {
    ec = outcome;
  } else if (outcome) {
    throw error(outcome, text(), ucx_status());
  }
}
template <class Text>
void end_with(std::error_code outcome, std::error_code& ec, Text text) {
  end_with(outcome, ec, text, [] { return std::optional<int>(); });
}

}  // namespace ucx::detail
