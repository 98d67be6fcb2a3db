// Functions that peers call: docs/reference/calls.md.
#pragma once

#include <any>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
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
#include "ucx/call_memory.hpp"
#include "ucx/call_reader.hpp"
#include "ucx/call_task.hpp"
#include "ucx/call_types.hpp"
#include "ucx/call_writer.hpp"
#include "ucx/error.hpp"
#include "ucx/hybrid_clock.hpp"
#include "ucx/late_answer.hpp"
#include "ucx/peer_identity.hpp"
#include "ucx/version.hpp"

namespace ucx {

class endpoint;
struct call_context;

namespace detail {
class call_deferral;
class call_directory;
class call_server_core;

/// How the function of a call defers it. A copy has none: it may outlive the function.
class deferral_of_call {
 public:
  deferral_of_call() noexcept = default;
  deferral_of_call(const deferral_of_call& /*other*/) noexcept {}
  deferral_of_call& operator=(const deferral_of_call& /*other*/) noexcept {
    by_ = nullptr;
    return *this;
  }
  ~deferral_of_call() = default;

 private:
  friend class call_directory;
  friend struct ucx::call_context;
  call_deferral* by_ = nullptr;
};
}  // namespace detail

/// The facts about a call that a function may know, beside its arguments. One object is for one
/// call.
struct call_context {
  /// The caller; without an identity where it has none.
  peer_identity identity = {};
  /// The program's own object, as a `my_program*`. `std::any_cast` returns it.
  std::any program = {};
  /// The connection by which the call came; null without one.
  /// Lifetime: until the function ends.
  const endpoint* peer = nullptr;
  /// The number that the caller has given to the call. It is unique among the calls of the
  /// connection that are under way.
  std::uint64_t number = 0;
  /// When the caller gives up, by this side's clock; nothing where it did not say so.
  std::optional<std::chrono::steady_clock::time_point> deadline = {};
  /// When all of the call was here, by the clock of the `call_server`. It is later than when it was
  /// sent, where the caller has a clock that is not too far ahead (`hybrid_clock::max_ahead`).
  /// Empty where the server has no clock.
  clock_stamp clock = {};
  /// Of `late_answer::context()`: stop is requested when the caller has given up.
  std::stop_token stop = {};
  /// The library's own.
  detail::deferral_of_call deferral = {};

  /// Has the function answer later, also after it has returned. Its result, or exception, is no
  /// answer then. Once, on the thread that runs the function. A call that is deferred
  /// counts as under way (`call_server_options::max_calls`) until it is answered.
  /// Errors: not_supported: a call without a connection (`call_table::dispatch`), or no call, or
  /// this is a copy. already_exists: a second time. canceled: the server of the call has ended.
  UCXIO_EXPORT late_answer defer(std::error_code& ec = throws) const;
};

/// The options of a function.
struct call_function_options {
  /// Words for people, in UTF-8: 4096 bytes at most. `call_channel::signatures()` tells them.
  std::string documentation = {};
  /// Where the memory beside its arguments lands before it runs.
  /// Errors: invalid_argument: there is no resource for its kind.
  call_memory memory = {};
};

/// How many calls a table has answered, by their ends.
struct call_statistics {
  std::uint64_t done = 0;      ///< The function returned.
  std::uint64_t failed = 0;    ///< It threw, or its result can not be sent.
  std::uint64_t refused = 0;   ///< By `call_table::refuse`, or because too many were under way.
  std::uint64_t invalid = 0;   ///< Of no such function, with other types, or no call at all.
  std::uint64_t given_up = 0;  ///< The caller gave up before the function ran.

  friend bool operator==(const call_statistics&, const call_statistics&) = default;
};

/// A call that has failed, for the log of a program.
/// Lifetime: of what it refers to, until the observer returns.
struct call_failure_report {
  const call_context& context;
  std::string_view function = {};  ///< Its name; empty where the call named none.
  std::error_code code = {};       ///< The code that the caller gets.
  std::error_code cause = {};      ///< Of `call_failed`: the code of what the function threw.
  std::string_view text = {};
};

/// The functions that peers may call, by name. A `call_server` runs them for connections. Without
/// one, a call and its answer are bytes.
///
///     ucx::call_table calls;
///     calls.add("add", [](int a, int b) { return a + b; });
///     const std::vector<std::byte> answer = calls.dispatch(call, context);
///
/// Threads: safe. A function that is added while calls run is there for later calls. Functions run
/// on the threads that call `dispatch()`, so they have to be safe there.
class UCXIO_EXPORT call_table {
 public:
  /// A function whose types are known at run time. It reads its arguments, which were compared with
  /// its signature, and writes one value: a nil where the signature has one. `arguments` and what
  /// it returns live until the function ends.
  using handler = std::function<void(call_context&, call_reader& arguments, call_writer& result)>;
  /// Returns whether a call is refused.
  using predicate = std::function<bool(const call_context&, std::string_view name)>;
  using observer = std::function<void(const call_failure_report&)>;

  call_table();
  call_table(call_table&& other) noexcept;
  call_table& operator=(call_table&& other) noexcept;
  ~call_table();

  /// Adds a function under a name: `add`, or `add/2` for its second version. Its signature comes
  /// from its parameters and its result (`docs/reference/calls.md`, "Types"). The first parameter
  /// may be a `call_context&`. A `std::string_view` refers to the bytes of the call. A coroutine
  /// returns a `call_task`.
  /// Errors: bad_name; already_exists. invalid_argument: its signature is longer than 4096 bytes,
  /// or its documentation is, or is not UTF-8.
  template <class Function>
  void add(std::string_view name, Function function, const call_function_options& options,
           std::error_code& ec = throws);
  template <class Function>
  void add(std::string_view name, Function function, std::error_code& ec = throws) {
    add(name, std::move(function), call_function_options(), ec);
  }

  /// Adds a function whose signature is known at run time: a `handler`, or what one is made from.
  /// It returns void: a coroutine would go on when its arguments are gone.
  /// Errors: those of `call_signature`; bad_name; already_exists. invalid_argument: `function` is
  /// empty, or its documentation is as above.
  template <class Handler>
  requires std::constructible_from<handler, Handler>
  void add_dynamic(std::string_view name, std::string_view signature, Handler function,
                   const call_function_options& options, std::error_code& ec = throws) {
    if constexpr (!std::is_null_pointer_v<Handler>) {
      using result = std::invoke_result_t<Handler&, call_context&, call_reader&, call_writer&>;
      static_assert(std::is_void_v<result>,
                    "a dynamic function returns void, and is no coroutine: it writes its result");
    }
    add_handler(name, signature, handler(std::move(function)), true, options, ec);
  }
  template <class Handler>
  requires std::constructible_from<handler, Handler>
  void add_dynamic(std::string_view name, std::string_view signature, Handler function,
                   std::error_code& ec = throws) {
    add_dynamic(name, signature, std::move(function), call_function_options(), ec);
  }

  /// Refuses the calls, and bindings, for which `refused` returns true. An empty one refuses none.
  /// It replaces an earlier one. It throws nothing. Asking for the functions is a call of the name
  /// ".signatures". It tells of refused functions, too.
  void refuse(predicate refused);
  /// Tells of each call that fails, before it is answered. It replaces an earlier observer, and
  /// throws nothing.
  void observe(observer told);
  call_statistics statistics() const noexcept;

  /// Runs the function that `call` names, and returns the bytes of the answer. They hold the
  /// result, or why there is none: `call_function::decode` reads them. The answer to a one-way call
  /// has no bytes. `call` may be anything.
  /// Throws std::bad_alloc alone. An exception of the function becomes a part of the answer: the
  /// code, and at most 1 KiB of text.
  /// Lifetime: `call`, until the function has returned.
  std::vector<std::byte> dispatch(std::span<const std::byte> call, call_context& context) const;

 private:
  friend class detail::call_server_core;

  /// `checks`: the arguments and the result are compared with the signature.
  void add_handler(std::string_view name, std::string_view signature, handler&& function,
                   bool checks, const call_function_options& options, std::error_code& ec);

  std::shared_ptr<detail::call_directory> functions_;
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
      write_result<Result>(result, std::apply(call, values));
    }
  }

  /// Begins a coroutine, which answers by `later`.
  template <class Function, bool TakesContext>
  static void begin(const std::shared_ptr<Function>& function, call_reader& arguments,
                    const call_context& context,
                    std::bool_constant<TakesContext> /*takes_context*/) {
    std::tuple<std::remove_cvref_t<Arguments>...> values{
        call_type<std::remove_cvref_t<Arguments>>::read(arguments)...};
    arguments.finish();
    late_answer later = context.defer();
    try {
      auto task = std::apply(
          [&](auto&... each) {
            if constexpr (TakesContext) {
              return std::invoke(*function, later.context(), std::move(each)...);
            } else {
              return std::invoke(*function, std::move(each)...);
            }
          },
          values);
      std::move(task).start(std::move(later), function);
    } catch (...) {  // it has not begun
      later.fail(std::current_exception());
    }
  }
};

}  // namespace detail

template <class Function>
void call_table::add(std::string_view name, Function function, const call_function_options& options,
                     std::error_code& ec) {
  using traits = detail::call_traits<Function>;
  using runner = detail::call_runner<typename traits::form>;
  static_assert(!traits::is_task || traits::owns_arguments,
                "a coroutine runs when its call has returned: it takes values, no references, and "
                "no std::string_view or std::span");
  // `std::function` copies what it has, and a function may be one that only moves.
  add_handler(
      name, traits::form::describe(),
      [kept = std::make_shared<Function>(std::move(function))](
          call_context& context, call_reader& arguments, call_writer& result) {
        if constexpr (traits::is_task) {
          runner::begin(kept, arguments, context, std::bool_constant<traits::takes_context>());
        } else if constexpr (traits::takes_context) {
          runner::run(*kept, arguments, result, context);
        } else {
          runner::run(*kept, arguments, result);
        }
      },
      false, options, ec);
}

}  // namespace ucx
