// How fast bytes may go.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <stop_token>

namespace ucx::tool {

/// Safe from any thread: all of them together get the rate.
class rate_limit {
 public:
  /// Bytes in a second; 0 is no limit.
  explicit rate_limit(std::uint64_t rate) noexcept : rate_(rate) {}

  /// Returns when `bytes` may go, or it was asked to stop.
  void take(std::size_t bytes, const std::stop_token& stop);
  /// Returns how many bytes to move at a time, `most` or less: so that several go in a second.
  std::size_t piece(std::size_t most) const noexcept;

 private:
  const std::uint64_t rate_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::chrono::steady_clock::time_point free_ = {};  // when the next may go
};

}  // namespace ucx::tool
