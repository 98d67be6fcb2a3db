// Gives an operation up when a stop is requested, on whatever thread that is.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>

#include "base/inbox_task.hpp"

namespace ucx::detail {

class operation;
class worker_core;

/// The thread that requests the stop takes no lock of the worker's: the worker gives the operation
/// up in its next round.
class stop_link final : public inbox_task, public std::enable_shared_from_this<stop_link> {
 public:
  /// Under the worker's lock. REQUIRES: `forget()` is called before the operation goes.
  static void connect(operation& ended, const std::stop_token& stop);
  explicit stop_link(operation& ended) noexcept;

  /// The operation has ended: from here on it is left alone. Under the worker's lock.
  void forget() noexcept;
  void run(worker_core& by) override;

 private:
  struct requested {
    stop_link& link;
    void operator()() const noexcept;
  };

  worker_core& worker_;
  operation* operation_;
  std::optional<std::stop_callback<requested>> callback_;
};

}  // namespace ucx::detail
