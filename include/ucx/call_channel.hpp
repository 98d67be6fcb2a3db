// Calls of the functions of a peer: docs/reference/calls.md, "Over connections".
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "ucx/call_argument.hpp"
#include "ucx/call_function.hpp"
#include "ucx/call_listing.hpp"
#include "ucx/call_memory.hpp"
#include "ucx/call_request.hpp"
#include "ucx/call_writer.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/hybrid_clock.hpp"
#include "ucx/remote_procedure.hpp"
#include "ucx/version.hpp"

namespace ucx {

namespace detail {
class call_channel_core;

/// The type as which an argument is sent: a literal is a text.
template <class Argument>
using sent_as = std::conditional_t<std::is_convertible_v<std::decay_t<Argument>, const char*>,
                                   std::string_view, std::remove_cvref_t<Argument>>;
}  // namespace detail

/// The options of a `call_channel`.
struct call_channel_options {
  /// The calls that may be under way. Further ones fail at once with `busy`.
  std::size_t max_calls = 1024;
  /// Stamps the calls, and takes the stamps of their answers. Null: calls carry none.
  std::shared_ptr<hybrid_clock> clock = nullptr;
};

/// The options of one call.
struct call_options {
  /// How long the call may take, with the connecting before it. The callee is told how much of it
  /// is left. Zero means the worker's `operation_timeout`.
  std::chrono::nanoseconds timeout = std::chrono::nanoseconds::zero();
  /// Where the memory beside the result lands.
  call_memory memory = {};
  /// Bytes beside the result at most. More is `call_failed`, with the cause `no_space`.
  std::size_t max_memory = std::size_t{256} << 20U;
};

/// Calls functions that a peer serves (`call_server`), over one connection of any kind.
///
///     ucx::call_channel peer(connection);
///     const int sum = peer.call<int>("add", 25, 17);
///
/// The types of the arguments are those that the function has: 25 is an `i32`. A call is sent once.
///
/// Errors: those of `call_function::decode()`. The connection's, as `connection_reset`, where the
/// call was not sent. After that a lost connection is `call_outcome_unknown`. With `timed_out` and
/// `canceled` the function has run, or will, or will not. A peer that serves no calls is
/// `no_such_handler`. Too many calls under way, here or at the peer, are `busy`.
/// Threads: as the worker's.
class UCXIO_EXPORT call_channel {
 public:
  /// Makes an empty channel, whose calls fail with `closed`.
  call_channel() noexcept;
  /// Calls over `connection`, and keeps it open. It may be connecting still.
  /// Errors: closed (it is empty), feature_disabled (a context without `feature::am`),
  /// not_supported (the peer is UCX alone).
  explicit call_channel(const endpoint& connection, const call_channel_options& options = {},
                        std::error_code& ec = throws);
  call_channel(call_channel&& other) noexcept;
  call_channel& operator=(call_channel&& other) noexcept;
  ~call_channel();

  /// Calls a function. Memory of variables is borrowed until the call is done. Buffers and tensors
  /// that are temporaries, or moved, become the call's: also where it fails.
  /// Completes: when the answer is here.
  template <class Result, class... Arguments>
  typed_call<Result> start_call(const call_options& options, std::string_view name,
                                Arguments&&... arguments) const {
    const remote_procedure<Result(detail::sent_as<Arguments>...)> called(name);
    call_writer values;
    (detail::write_argument<detail::sent_as<Arguments>>(values, std::forward<Arguments>(arguments)),
     ...);
    return typed_call<Result>(start_dynamic_call(called.untyped(), values, options));
  }
  template <class Result, class... Arguments>
  typed_call<Result> start_call(std::string_view name, Arguments&&... arguments) const {
    return start_call<Result>(call_options(), name, std::forward<Arguments>(arguments)...);
  }

  /// Calls a function, and waits for its result.
  template <class Result, class... Arguments>
  Result call(const call_options& options, std::string_view name,
              const Arguments&... arguments) const {
    return start_call<Result>(options, name, arguments...).result();
  }
  template <class Result, class... Arguments>
  Result call(std::string_view name, const Arguments&... arguments) const {
    return call<Result>(call_options(), name, arguments...);
  }

  /// Calls a function, and asks for no answer: only errors that show here are reported.
  /// Completes: when this returns; the call goes on its way by itself.
  /// Errors: no_space, invalid_argument (the arguments), closed, the connection's.
  template <class Result = void, class... Arguments>
  void post_call(std::string_view name, const Arguments&... arguments) const {
    const remote_procedure<Result(detail::sent_as<Arguments>...)> called(name);
    call_writer values;
    (detail::call_type<detail::sent_as<Arguments>>::write(values, arguments), ...);
    post_dynamic_call(called.untyped(), values);
  }

  /// Calls a function whose types are known at run time.
  /// Errors: also those of `arguments.written()`, by the request.
  call_request start_dynamic_call(const call_function& called, const call_writer& arguments,
                                  const call_options& options = {}) const;
  void post_dynamic_call(const call_function& called, const call_writer& arguments,
                         std::error_code& ec = throws) const;

  /// Returns the functions that the peer serves and lets this side call, by name. Waits for several
  /// answers where there are many: `options.timeout` bounds all together.
  /// Errors: also would_deadlock inside a completion callback of the worker. protocol_error also
  /// where the peer tells of more than `call_listing` may have.
  std::vector<call_description> signatures(const call_options& options = {},
                                           std::error_code& ec = throws) const;
  /// Asks for the functions whose names come behind `after`.
  /// Completes: when a part of them is here, which is whole where `call_listing::is_whole`.
  typed_call<call_listing> start_signatures(const call_options& options = {},
                                            std::string_view after = {}) const;

  /// Returns how many calls of this channel are under way.
  std::size_t under_way() const noexcept;

 private:
  friend struct detail::call_starter;
  std::shared_ptr<detail::call_channel_core> core_;
};

}  // namespace ucx
