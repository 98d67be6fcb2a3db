// Operations one after another as one: it ends with the last of them, or with the first that fails.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "ucx/request.hpp"
#include "worker/operation_group.hpp"

namespace ucx::detail {

class endpoint_core;

/// Under the worker's lock, steps included. Given up, it ends when the step that is under way has,
/// or at once where that goes on without it.
class serial_operation final : public operation, private operation_group {
 public:
  struct step {
    /// Starts it. An empty request has ended well. Throws nothing but std::bad_alloc.
    std::function<result<request>()> begin;
    /// Is told how it has ended.
    std::function<void(const result<void>&)> end = {};
    /// Returns whether what has begun goes on where this is given up.
    std::function<bool()> goes_on = {};
  };

  /// `doing` is what the text of a failure without words begins with. `at_end` is called when it
  /// has ended, before anybody is told.
  static request start(endpoint_core& over, const io_options& options, std::string doing,
                       std::vector<step> steps, std::function<void()> at_end = {});

  serial_operation(std::string doing, std::vector<step> steps,
                   std::function<void()> at_end) noexcept
      : doing_(std::move(doing)), steps_(std::move(steps)), at_end_(std::move(at_end)) {}

  void give_up(errc why) noexcept override;
  void connection_failed(std::error_code) noexcept override {}  // its step is told
  std::string describe() const override { return done() && !text_.empty() ? text_ : doing_; }
  std::optional<int> own_ucx_status() const noexcept override { return ucx_status_; }
  void set_blocking() noexcept override;
  bool leaves_to_round() const noexcept override { return true; }  // users of a client

 protected:
  void recycle() noexcept override { delete this; }

 private:
  void go_on() noexcept;
  bool ended(const result<void>& outcome) noexcept;
  bool is_last() const noexcept { return next_ + 1 >= steps_.size(); }
  void member_ended(operation& member, std::error_code outcome) noexcept override;
  void finish(const result<void>& outcome) noexcept;

  const std::string doing_;
  std::string text_;  // of a failure
  std::optional<int> ucx_status_;
  std::vector<step> steps_;
  std::function<void()> at_end_;
  std::size_t next_ = 0;
  bool is_starting_ = false;
  bool is_in_start_ = false;
  std::error_code given_up_;
};

}  // namespace ucx::detail
