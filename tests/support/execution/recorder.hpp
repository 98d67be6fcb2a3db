// A receiver that writes down how it was completed.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <stop_token>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

#include "support/execution/own_names.hpp"

namespace ucx::test {

enum class completion { none, value, error, stopped };

/// What a receiver was told; outlives it.
struct record {
  std::atomic<int> calls{0};
  std::atomic<completion> how{completion::none};
  std::error_code code = {};
  std::exception_ptr thrown = {};
  std::thread::id thread = {};
  std::function<void()> then = {};  ///< Called last, as the next step of a program is.

  void note(completion told) {
    thread = std::this_thread::get_id();
    how = told;
    const std::function<void()> next = then;
    ++calls;  // who waits for this may end the record
    if (next) next();
  }
};

class recorder {
 public:
  using receiver_concept = execution::receiver_tag;
  explicit recorder(record& into, std::stop_token stop = {})
      : into_(&into), stop_(std::move(stop)) {}

  template <class... Values>
  void set_value(Values&&...) && noexcept {
    into_->note(completion::value);
  }
  void set_error(std::error_code why) && noexcept {
    into_->code = why;
    into_->note(completion::error);
  }
  void set_error(std::exception_ptr why) && noexcept {
    into_->thrown = std::move(why);
    into_->note(completion::error);
  }
  void set_stopped() && noexcept { into_->note(completion::stopped); }
  std::stop_token get_env() const noexcept { return stop_; }

 private:
  record* into_;
  std::stop_token stop_;
};

template <class Sender>
using recorded = decltype(std::declval<Sender>().connect(std::declval<recorder>()));

}  // namespace ucx::test
