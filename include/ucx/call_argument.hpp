// Arguments of calls that last longer than they do: docs/reference/calls.md, "Memory beside a
// call".
#pragma once

#include <type_traits>
#include <utility>

#include "ucx/call_types.hpp"
#include "ucx/call_writer.hpp"

namespace ucx::detail {

/// Whether a value of the type can give its buffers away.
template <class T>
concept gives_memory = requires(call_writer& to, T&& value) {
  call_type<std::remove_cvref_t<T>>::give(to, std::forward<T>(value));
};

/// Writes an argument of a call that may last longer than the argument. Buffers of a variable are
/// borrowed. Those of a temporary, or of what was moved, become the call's.
template <class Sent, class T>
void write_argument(call_writer& to, T&& value) {
  if constexpr (std::is_lvalue_reference_v<T> || !holds_memory<Sent>) {
    call_type<Sent>::write(to, value);
  } else {
    static_assert(gives_memory<T>,
                  "the buffers of this argument end before the call: keep it in a "
                  "variable until the call is done");
    call_type<Sent>::give(to, std::forward<T>(value));
  }
}

/// Keeps for `write_argument` whether an argument is a variable.
template <class T>
class call_argument {
 public:
  call_argument(const T& kept) noexcept : kept_(&kept) {}
  call_argument(T&& given) noexcept : given_(&given) {
    static_assert(gives_memory<T>,
                  "the buffers of this argument end before the call: keep it in a "
                  "variable until the call is done");
  }
  call_argument(const T&& given) = delete;

  void write(call_writer& to) const {
    if constexpr (gives_memory<T>) {
      if (given_ != nullptr) return write_argument<T>(to, std::move(*given_));
    }
    write_argument<T>(to, *kept_);
  }

 private:
  const T* kept_ = nullptr;
  T* given_ = nullptr;
};

}  // namespace ucx::detail
