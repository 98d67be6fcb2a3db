// A function of a peer with C++ types: docs/reference/calls.md.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include "ucx/call_containers.hpp"
#include "ucx/call_form.hpp"
#include "ucx/call_function.hpp"
#include "ucx/call_types.hpp"
#include "ucx/error.hpp"

namespace ucx {

namespace detail {

/// Reads the result of a call, which ends with it.
/// Errors: protocol_error.
template <class Result>
Result read_call_result(call_reader& from, std::error_code& ec) {
  if constexpr (std::is_void_v<Result>) {
    if (!from.nil()) from.fail("nil is expected");
    from.finish(ec);
  } else {
    Result value = call_type<Result>::read(from);
    from.finish(ec);
    return value;
  }
}

}  // namespace detail

template <class Form>
class remote_procedure;

/// A function that a peer has, with C++ types. Makes the bytes of calls, and reads the bytes of
/// answers.
///
///     const ucx::remote_procedure<int(int, int)> add("add");
///     const int sum = add.decode(calls.dispatch(add.encode(40, 2), context));
template <class Result, class... Arguments>
class remote_procedure<Result(Arguments...)> {
 public:
  /// Names a function: `add`, or `add/2` for its second version.
  /// Errors: bad_name. invalid_argument: the signature is longer than 4096 bytes.
  explicit remote_procedure(std::string_view name, std::error_code& ec = throws)
      : function_(name, form::describe(), ec) {}

  /// Returns the function without its C++ types: its name and its signature.
  const call_function& untyped() const noexcept { return function_; }

  /// Returns the bytes of a call.
  /// Errors: no_space: more than 1 MiB of arguments. invalid_argument: a text that is not UTF-8.
  std::vector<std::byte> encode(const std::remove_cvref_t<Arguments>&... arguments,
                                std::error_code& ec = throws) const {
    call_writer values;
    (detail::call_type<std::remove_cvref_t<Arguments>>::write(values, arguments), ...);
    return function_.encode(values, ec);
  }

  /// Reads an answer, and returns the result.
  /// Errors: those of `call_function::decode()`; protocol_error: the result has other types.
  Result decode(std::span<const std::byte> answer, std::error_code& ec = throws) const {
    call_reader from = function_.decode(answer, ec);
    std::error_code wrong;  // of a reader of nothing
    return detail::read_call_result<Result>(from, &ec != &throws && ec ? wrong : ec);
  }

 private:
  using form = detail::call_form<Result, Arguments...>;

  call_function function_;
};

}  // namespace ucx
