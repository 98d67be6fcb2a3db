// Senders: of which parts they are made, and those of any request.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "ucx/execution_names.hpp"
#include "ucx/execution_state.hpp"
#include "ucx/request.hpp"
#include "ucx/worker.hpp"

namespace ucx {
inline namespace UCXIO_EXECUTION_NAMES {
namespace senders {

/// An operation without a value.
struct no_result {
  using completion = execution::set_value_t();
};
/// An operation whose value `Read` takes out of the call and the request that has ended.
template <class Call, class Read>
struct result_by {
  using completion = execution::set_value_t(std::invoke_result_t<Read, Call&, request&>);
};

/// Starts an operation of `object` by `call`, which stays in its place until the completion. `Read`
/// is a function object without a state, or `no_result`.
template <class Object, class Call, class Read = no_result>
class start_of {
 public:
  static constexpr bool begins = true;
  using values =
      typename std::conditional_t<std::same_as<Read, no_result>, std::type_identity<no_result>,
                                  std::type_identity<result_by<Call, Read>>>::type::completion;

  start_of(Object& object, Call call) : object_(&object), call_(std::move(call)) {}
  request operator()() { return call_(*object_); }
  std::shared_ptr<ucx::detail::driven_tasks> tasks() const noexcept {
    return ucx::detail::tasks_of(*object_);
  }
  /// The request goes before the receiver is told, which may start another operation.
  template <class Receiver>
  void succeed(request ended, Receiver&& told) noexcept {
    if constexpr (std::same_as<Read, no_result>) {
      ended = request();
      execution::set_value(std::forward<Receiver>(told));
    } else {
      auto value = Read()(call_, ended);
      ended = request();
      execution::set_value(std::forward<Receiver>(told), std::move(value));
    }
  }

 private:
  Object* object_;
  Call call_;
};

/// Starts nothing: the request is under way.
class started {
 public:
  static constexpr bool begins = false;
  using values = execution::set_value_t(message_info);

  explicit started(request under_way) noexcept : request_(std::move(under_way)) {}
  request operator()() noexcept { return std::move(request_); }
  std::shared_ptr<ucx::detail::driven_tasks> tasks() const noexcept { return nullptr; }
  template <class Receiver>
  void succeed(request ended, Receiver&& told) noexcept {
    message_info info = ended.received();
    ended = request();
    execution::set_value(std::forward<Receiver>(told), std::move(info));
  }

 private:
  request request_;
};

/// A sender of one operation. It completes once:
///
///     set_value(...)       the operation has ended well
///     set_error(code)      it has failed, or could not begin; `timed_out` is such an error, too
///     set_stopped()        it was canceled because the receiver's stop token asked for that
///
/// That is on the thread that drives the worker. It is inside `start()` if the request is done at
/// once, or the stop was requested before it began. A stop may be requested on any thread. An
/// outcome that came first counts. A worker without a thread has to be driven until its senders
/// have completed: its last handle has to live as long.
/// Lifetime: the object and everything that the call refers to, until `start()` has returned; the
/// operation's memory, until it completes.
/// Threads: `start()` as the worker's.
/// Cost: no allocation after warm-up, but for the words of an error (`with_text`).
template <class Start, class Failure = ucx::detail::failure_as_code>
class request_sender {
 public:
  using sender_concept = execution::sender_tag;
  using completion_signatures =
      execution::completion_signatures<typename Start::values,
                                       execution::set_error_t(typename Failure::type),
                                       execution::set_stopped_t()>;

  explicit request_sender(Start start) : start_(std::move(start)) {}

  template <class Receiver>
  request_state<Start, Failure, Receiver> connect(Receiver receiver) && {
    return {std::move(start_), std::move(receiver)};
  }
  template <class Receiver>
  requires std::copy_constructible<Start> request_state<Start, Failure, Receiver> connect(
      Receiver receiver)
  const& { return {start_, std::move(receiver)}; }

  /// See with_text.
  request_sender<Start, ucx::detail::failure_as_exception> told_with_text() && {
    return request_sender<Start, ucx::detail::failure_as_exception>(std::move(start_));
  }

 private:
  Start start_;
};

/// Makes a sender of an operation of `object`.
template <class Read = no_result, class Object, class Call>
request_sender<start_of<Object, Call, Read>> over(Object& object, Call call) {
  return request_sender<start_of<Object, Call, Read>>({object, std::move(call)});
}

/// Calls what makes a request, whatever it is of.
template <class Call>
struct call_of {
  Call call;
  request operator()(worker&) { return std::invoke(call); }
};

}  // namespace senders

/// Returns a sender of the same operation whose errors are a `std::exception_ptr` to `ucx::error`:
/// a code has no words.
/// Cost: an allocation where it fails.
template <class Start>
auto with_text(senders::request_sender<Start> sender) {
  return std::move(sender).told_with_text();
}

/// Returns the sender of a request that is under way. Its value is `request::received()`. A
/// receiver that asks for a stop cancels it, also before `start()`: it completes when UCX has let
/// go of the memory. A sender that is dropped gives the operation up, as the request's destructor
/// does. It can be connected once. In a loop over requests that are done at once, use
/// `async_start`: this one knows no worker, and nests more than 64 completions.
inline auto as_sender(request&& under_way) {
  return senders::request_sender<senders::started>(senders::started(std::move(under_way)));
}

/// Returns the sender of any operation of `driven`, and of the objects that were made of it. `call`
/// begins it, and returns its request. It runs inside `start()`. It lives until the completion.
///
///     ucx::async_start(worker, [&] { return client.start_stat("name", found); })
///
/// Errors: also what `call` throws. A `std::system_error` gives its code, `std::bad_alloc` gives
/// `no_memory`, and any other `invalid_argument`. `with_text` keeps the exception itself.
template <class Call>
requires std::same_as<std::invoke_result_t<Call&>, request>
auto async_start(worker& driven, Call call) {
  return senders::over(driven, senders::call_of<Call>{std::move(call)});
}

}  // namespace UCXIO_EXECUTION_NAMES
}  // namespace ucx
