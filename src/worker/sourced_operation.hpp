// An operation that the program completes: the core of `request_source`.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "ucx/completion_handler.hpp"
#include "ucx/error.hpp"
#include "worker/operation.hpp"

namespace ucx::detail {

/// A description. A shared one is not copied.
struct sourced_words {
  std::string own = {};
  std::shared_ptr<const std::string> shared = {};
};

/// Under the worker's lock. Given up it ends at once, unless it is claimed:
///
///     from    | given up             | complete() | unclaim()
///     free    | over                 | over       |
///     claimed | claimed, to be ended | over       | free, or over where it was to be ended
class sourced_operation final : public operation {
 public:
  static constexpr std::size_t most_idle = 64;

  /// The source has a reference, too, from here on. Takes `on_stop`, unless it throws: then it has
  /// not begun.
  void begin(std::shared_ptr<worker_core> of, sourced_words words, completion_handler& on_stop,
             clock::time_point deadline);
  bool claim() noexcept;
  void unclaim() noexcept;
  /// `unused` gets what is destroyed without the lock.
  bool end(std::error_code outcome, std::string text, completion_handler& unused) noexcept;

  void give_up(errc why) noexcept override;
  void connection_failed(std::error_code) noexcept override {}  // it has none
  /// Threads ask at any time: before its end, for what does not change.
  std::string describe() const override;
  bool leaves_to_round() const noexcept override { return tells_stop_; }

 protected:
  void recycle() noexcept override;

 private:
  sourced_words words_;
  std::string text_;  // of a failure
  // Empty where nothing is to be told, and kept then for the next life.
  std::unique_ptr<completion_handler> on_stop_;
  bool tells_stop_ = false;
  bool claimed_ = false;
  std::optional<errc> given_up_;
};

}  // namespace ucx::detail
