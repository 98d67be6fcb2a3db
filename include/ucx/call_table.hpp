// Functions that peers call: docs/reference/calls.md.
#pragma once

#include <any>
#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "ucx/call_containers.hpp"
#include "ucx/call_form.hpp"
#include "ucx/call_function.hpp"
#include "ucx/call_reader.hpp"
#include "ucx/call_types.hpp"
#include "ucx/call_writer.hpp"
#include "ucx/error.hpp"
#include "ucx/peer_identity.hpp"
#include "ucx/version.hpp"

namespace ucx {

/// The facts about a call that a function may know, beside its arguments.
struct call_context {
  /// The caller; without an identity where it has none.
  peer_identity identity = {};
  /// The program's own object, as a `my_program*`. `std::any_cast` returns it.
  std::any program = {};
};

/// The functions that peers may call, by name. It needs no connection: a call and its answer are
/// bytes.
///
///     ucx::call_table calls;
///     calls.add("add", [](int a, int b) { return a + b; });
///     const std::vector<std::byte> answer = calls.dispatch(call, context);
///
/// Threads: `dispatch()` from several at once, where the functions allow it. No other call
/// meanwhile.
class UCXIO_EXPORT call_table {
 public:
  /// A function whose types are known at run time. It reads its arguments, and writes one value: a
  /// nil where the signature has one. `arguments` and what it returns live until the function ends.
  using handler = std::function<void(call_context&, call_reader& arguments, call_writer& result)>;

  call_table();
  call_table(call_table&& other) noexcept;
  call_table& operator=(call_table&& other) noexcept;
  ~call_table();

  /// Adds a function under a name: `add`, or `add/2` for its second version. Its signature comes
  /// from its parameters and its result (`docs/reference/calls.md`, "Types"). The first parameter
  /// may be a `call_context&`. A `std::string_view` refers to the bytes of the call.
  /// Errors: bad_name; already_exists. invalid_argument: its signature is longer than 4096 bytes.
  template <class Function>
  void add(std::string_view name, Function function, std::error_code& ec = throws);

  /// Adds a function whose signature is known at run time: a `handler`, or what one is made from.
  /// It returns void: a coroutine would go on when its arguments are gone.
  /// Errors: those of `call_signature`; bad_name; already_exists. invalid_argument: `function` is
  /// empty.
  template <class Handler>
  requires std::constructible_from<handler, Handler>
  void add_dynamic(std::string_view name, std::string_view signature, Handler function,
                   std::error_code& ec = throws) {
    if constexpr (!std::is_null_pointer_v<Handler>) {
      using result = std::invoke_result_t<Handler&, call_context&, call_reader&, call_writer&>;
      static_assert(std::is_void_v<result>,
                    "a dynamic function returns void, and is no coroutine: it writes its result");
    }
    add_handler(name, signature, handler(std::move(function)), ec);
  }

  /// Runs the function that `call` names, and returns the bytes of the answer. They hold the
  /// result, or why there is none: `call_function::decode` reads them. `call` may be anything.
  /// Throws std::bad_alloc alone. An exception of the function becomes a part of the answer: the
  /// code, and at most 1 KiB of text.
  /// Lifetime: `call`, until the function has returned.
  std::vector<std::byte> dispatch(std::span<const std::byte> call, call_context& context) const;

 private:
  struct functions;

  void add_handler(std::string_view name, std::string_view signature, handler&& function,
                   std::error_code& ec);

  std::unique_ptr<functions> functions_;
};

namespace detail {

/// Calls a function with the arguments that are read.
template <class Form>
struct call_runner;

template <class Result, class... Arguments>
struct call_runner<call_form<Result, Arguments...>> {
  template <class Function, class... Context>
  static void run(Function& function, call_reader& arguments, call_writer& result,
                  Context&... context) {
    std::tuple<std::remove_cvref_t<Arguments>...> values{
        call_type<std::remove_cvref_t<Arguments>>::read(arguments)...};
    arguments.finish();
    const auto call = [&](auto&... each) -> Result {
      return std::invoke(function, context..., static_cast<Arguments&&>(each)...);
    };
    if constexpr (std::is_void_v<Result>) {
      std::apply(call, values);
      result.nil();
    } else {
      call_type<std::remove_cvref_t<Result>>::write(result, std::apply(call, values));
    }
  }
};

}  // namespace detail

template <class Function>
void call_table::add(std::string_view name, Function function, std::error_code& ec) {
  using traits = detail::call_traits<Function>;
  using runner = detail::call_runner<typename traits::form>;
  // `std::function` copies what it has, and a function may be one that only moves.
  add_handler(
      name, traits::form::describe(),
      [kept = std::make_shared<Function>(std::move(function))](
          call_context& context, call_reader& arguments, call_writer& result) {
        if constexpr (traits::takes_context) {
          runner::run(*kept, arguments, result, context);
        } else {
          runner::run(*kept, arguments, result);
        }
      },
      ec);
}

}  // namespace ucx
