// One client that many want: who connects, connects for all of them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "base/result.hpp"

namespace ucx::detail {

class client_core;

/// Keeps no client alive. Safe from any thread.
class client_slot {
 public:
  using connector = std::function<result<std::shared_ptr<client_core>>()>;

  client_slot() = default;
  client_slot(const client_slot&) = delete;
  client_slot& operator=(const client_slot&) = delete;

  /// Returns the client that is there, unless it is lost; else what `connect` makes. A caller that
  /// comes while another one connects gets that one's outcome. A server that does not answer costs
  /// each caller one time-out, however many ask.
  result<std::shared_ptr<client_core>> get(const connector& connect);
  /// Returns whether no caller has the client. Waits for one that connects.
  bool is_idle();
  /// Returns how many are in `get()` at present.
  std::size_t asking() const noexcept { return asking_.load(std::memory_order_acquire); }

 private:
  std::mutex connecting_;
  std::weak_ptr<client_core> client_;
  std::optional<failure> failure_;       // of the last attempt
  std::atomic<std::uint64_t> ended_{0};  // attempts
  std::atomic<std::size_t> asking_{0};
};

}  // namespace ucx::detail
