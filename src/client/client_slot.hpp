// One client that many want: who connects, connects for all of them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>

namespace ucx::detail {

class client_core;

/// Keeps no client alive. Safe from any thread.
class client_slot {
 public:
  using connector = std::function<std::shared_ptr<client_core>(std::string&, std::error_code&)>;

  client_slot() = default;
  client_slot(const client_slot&) = delete;
  client_slot& operator=(const client_slot&) = delete;

  /// Returns the client that is there, unless it is lost; else what `connect` makes. Who comes
  /// while another one connects gets that one's outcome: a server that does not answer costs
  /// everybody one time-out, however many ask.
  std::shared_ptr<client_core> get(const connector& connect, std::string& what,
                                   std::error_code& ec);
  /// Returns whether nobody has the client. Waits for who connects.
  bool is_idle();
  /// Returns how many are in `get()` at present.
  std::size_t asking() const noexcept { return asking_.load(std::memory_order_acquire); }

 private:
  std::mutex connecting_;
  std::weak_ptr<client_core> client_;
  std::error_code failure_;  // of the last attempt
  std::string failure_text_;
  std::atomic<std::uint64_t> ended_{0};  // attempts
  std::atomic<std::size_t> asking_{0};
};

}  // namespace ucx::detail
