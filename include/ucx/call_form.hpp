// The signature of a C++ function: docs/reference/calls.md, "Signatures".
#pragma once

#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>

#include "ucx/call_types.hpp"
#include "ucx/call_writer.hpp"

namespace ucx {

struct call_context;
template <class Result>
class call_task;

namespace detail {

/// The result that a function answers with.
template <class Returned>
struct answered_result {
  using type = Returned;
  static constexpr bool is_task = false;
};
template <class Result>
struct answered_result<call_task<Result>> {
  using type = Result;
  static constexpr bool is_task = true;
};

/// Whether what is read of this type refers to the bytes of the call.
template <class T>
inline constexpr bool is_view_of_call = call_type<std::remove_cvref_t<T>>::borrows && !requires {
  std::remove_cvref_t<T>::granted;
};

/// The result and the arguments of a function, without a `call_context&`.
template <class Result, class... Arguments>
struct call_form {
  template <class Each>
  using type = call_type<std::remove_cvref_t<Each>>;

  static_assert(((!std::is_lvalue_reference_v<Arguments> ||
                  std::is_const_v<std::remove_reference_t<Arguments>>)&&...),
                "an argument by reference is not given back: take a value or a const reference");
  static_assert((true && ... && (type<Arguments>::depth <= call_writer::max_depth)),
                "an argument has more than 16 lists, maps and records within each other");

  using kept_result = std::conditional_t<std::is_void_v<Result>, char, std::remove_cvref_t<Result>>;
  static_assert(sizeof(std::tuple<std::remove_cvref_t<Arguments>...>) + sizeof(kept_result) <=
                    largest_call_object,
                "the arguments and the result take more than 256 KiB: put it in a vector");

  /// Returns the text of the signature.
  static std::string describe() {
    std::string text = "(";
    describe_each<std::remove_cvref_t<Arguments>...>(text);
    text += ")->";
    if constexpr (std::is_void_v<Result>) {
      text += "nil";
    } else {
      static_assert(!type<Result>::borrows,
                    "a result owns its memory: return a std::string, not a std::string_view");
      static_assert(type<Result>::depth <= call_writer::max_depth,
                    "the result has more than 16 lists, maps and records within each other");
      type<Result>::describe(text);
    }
    return text;
  }
};

/// A function that takes the call's context first, or does not.
template <class Result, class... Arguments>
struct call_parameters {
  static constexpr bool takes_context = false;
  static constexpr bool is_task = answered_result<Result>::is_task;
  static constexpr bool owns_arguments =
      (true && ... && (!std::is_reference_v<Arguments> && !is_view_of_call<Arguments>));
  using form = call_form<typename answered_result<Result>::type, Arguments...>;
};
template <class Result, class... Arguments>
struct call_parameters<Result, call_context&, Arguments...>
    : call_parameters<Result, Arguments...> {
  static constexpr bool takes_context = true;
};

/// The parameters of a function, or of an object that is called as one.
template <class Function>
struct call_traits {
  static_assert(sizeof(Function) == 0,
                "a function that peers call has one operator(), whose parameters have named types");
};
template <class Function>
requires requires { &Function::operator(); }
struct call_traits<Function> : call_traits<decltype(&Function::operator())> {};

template <class R, class... A>
struct call_traits<R (*)(A...)> : call_parameters<R, A...> {};
template <class R, class... A>
struct call_traits<R (*)(A...) noexcept> : call_parameters<R, A...> {};
template <class R, class F, class... A>
struct call_traits<R (F::*)(A...)> : call_parameters<R, A...> {};
template <class R, class F, class... A>
struct call_traits<R (F::*)(A...) noexcept> : call_parameters<R, A...> {};
template <class R, class F, class... A>
struct call_traits<R (F::*)(A...) const> : call_parameters<R, A...> {};
template <class R, class F, class... A>
struct call_traits<R (F::*)(A...) const noexcept> : call_parameters<R, A...> {};

}  // namespace detail

}  // namespace ucx
