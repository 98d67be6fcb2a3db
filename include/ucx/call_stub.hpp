// Functions of a peer that are bound once: docs/reference/calls.md, "Over connections".
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "ucx/call_argument.hpp"
#include "ucx/call_channel.hpp"
#include "ucx/call_function.hpp"
#include "ucx/call_request.hpp"
#include "ucx/call_writer.hpp"
#include "ucx/error.hpp"
#include "ucx/remote_procedure.hpp"
#include "ucx/version.hpp"

namespace ucx {

/// A function of a peer whose signature the peer has compared, without C++ types. It has the number
/// by which that peer knows the function. Calls carry that number and the arguments.
class UCXIO_EXPORT bound_function {
 public:
  /// Asks the peer of `channel` for the function, and waits for the answer.
  /// Errors: those of `call_channel`; would_deadlock inside a completion callback of the worker.
  bound_function(const call_channel& channel, call_function called,
                 const call_options& options = {}, std::error_code& ec = throws);

  /// Returns the function: its name and its signature.
  const call_function& called() const noexcept { return called_; }
  /// Calls it, as `call_channel::start_dynamic_call`.
  /// Errors: no_such_name also where the peer serves another table since: bind it again.
  call_request start(const call_writer& arguments, const call_options& options = {}) const;

 private:
  friend struct detail::call_starter;

  call_function called_;
  std::shared_ptr<detail::call_channel_core> channel_;
  std::uint64_t number_ = 0;
};

template <class Form>
class call_stub;

/// A function of a peer that is called as if it were here.
///
///     const ucx::call_stub<int(int, int)> add(peer, "add");
///     const int sum = add(25, 17);
///
/// Lifetime: it shares the channel's connection, and serves after the channel has gone.
/// Threads: as the worker's.
template <class Result, class... Arguments>
class call_stub<Result(Arguments...)> {
  template <class T>
  using passed = std::conditional_t<detail::holds_memory<std::remove_cvref_t<T>>,
                                    detail::call_argument<std::remove_cvref_t<T>>,
                                    const std::remove_cvref_t<T>&>;

 public:
  /// Binds a function by its name, as `bound_function` does.
  /// Errors: also bad_name; invalid_argument: the signature is longer than 4096 bytes.
  call_stub(const call_channel& channel, std::string_view name, const call_options& options = {},
            std::error_code& ec = throws)
      : bound_(channel, remote_procedure<Result(Arguments...)>(name).untyped(), options, ec) {}

  const bound_function& untyped() const noexcept { return bound_; }

  /// Calls it, and waits for its result.
  /// Errors: those of `call_channel`.
  Result operator()(const std::remove_cvref_t<Arguments>&... arguments) const {
    return start(arguments...).result();
  }
  /// Calls it. Memory is borrowed, or becomes the call's, as by `call_channel::start_call`.
  /// Completes: when the answer is here.
  typed_call<Result> start(passed<Arguments>... arguments) const {
    return start_with({}, arguments...);
  }
  typed_call<Result> start_with(const call_options& options, passed<Arguments>... arguments) const {
    call_writer values;
    (write<std::remove_cvref_t<Arguments>>(values, arguments), ...);
    return typed_call<Result>(bound_.start(values, options));
  }

 private:
  template <class T>
  static void write(call_writer& to, const T& value) {
    detail::call_type<T>::write(to, value);
  }
  template <class T>
  static void write(call_writer& to, const detail::call_argument<T>& value) {
    value.write(to);
  }

  bound_function bound_;
};

}  // namespace ucx
