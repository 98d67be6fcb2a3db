// The names of std::execution, as small as tests need them: a program's own choice.
#pragma once

#include <concepts>
#include <stop_token>
#include <type_traits>
#include <utility>

#define UCXIO_EXECUTION_NAMES with_own
namespace ucx {
inline namespace with_own {
namespace execution {

struct sender_tag {};
struct receiver_tag {};
struct operation_state_tag {};
struct scheduler_tag {};

struct get_scheduler_t {};
template <class Completion>
struct get_completion_scheduler_t {};
enum class forward_progress_guarantee { concurrent, parallel, weakly_parallel };
struct get_forward_progress_guarantee_t {};

struct set_value_t {
  template <class Receiver, class... Values>
  void operator()(Receiver&& told, Values&&... values) const noexcept {
    std::forward<Receiver>(told).set_value(std::forward<Values>(values)...);
  }
};
struct set_error_t {
  template <class Receiver, class Error>
  void operator()(Receiver&& told, Error&& why) const noexcept {
    std::forward<Receiver>(told).set_error(std::forward<Error>(why));
  }
};
struct set_stopped_t {
  template <class Receiver>
  void operator()(Receiver&& told) const noexcept {
    std::forward<Receiver>(told).set_stopped();
  }
};
inline constexpr set_value_t set_value;
inline constexpr set_error_t set_error;
inline constexpr set_stopped_t set_stopped;

struct no_environment {};
/// A token of which no stop comes.
struct never_stop_token {
  static constexpr bool stop_requested() noexcept { return false; }
  static constexpr bool stop_possible() noexcept { return false; }
};
struct no_callback {
  template <class... Anything>
  explicit no_callback(Anything&&...) noexcept {}
};

template <class Token, class Callback>
struct stop_callback_for {
  using type = no_callback;
};
template <class Callback>
struct stop_callback_for<std::stop_token, Callback> {
  using type = std::stop_callback<Callback>;
};
template <class Token, class Callback>
using stop_callback_for_t = typename stop_callback_for<Token, Callback>::type;

template <class Object>
auto get_env(const Object& object) noexcept {
  if constexpr (requires { object.get_env(); }) {
    return object.get_env();
  } else {
    return no_environment();
  }
}
/// An environment is a stop token here, or has none.
inline std::stop_token get_stop_token(const std::stop_token& environment) noexcept {
  return environment;
}
template <class Environment>
never_stop_token get_stop_token(const Environment&) noexcept {
  return {};
}

template <class Sender, class Receiver>
auto connect(Sender&& sender, Receiver receiver) {
  return std::forward<Sender>(sender).connect(std::move(receiver));
}
template <class State>
void start(State& state) noexcept {
  state.start();
}

template <class... Completions>
struct completion_signatures {};
template <class Sender, class Environment>
using completion_signatures_of_t = typename std::decay_t<Sender>::completion_signatures;

}  // namespace execution
}  // namespace with_own
}  // namespace ucx
