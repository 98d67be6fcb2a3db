#include "copying/rate_limit.hpp"

#include <algorithm>

namespace ucx::tool {

void rate_limit::take(std::size_t bytes, const std::stop_token& stop) {
  if (rate_ == 0) return;
  const std::chrono::duration<double> takes(static_cast<double>(bytes) /
                                            static_cast<double>(rate_));
  std::unique_lock guard(mutex_);
  const auto begin = std::max(std::chrono::steady_clock::now(), free_);
  free_ = begin + std::chrono::duration_cast<std::chrono::nanoseconds>(takes);
  changed_.wait_until(guard, stop, begin, [] { return false; });
}

std::size_t rate_limit::piece(std::size_t most) const noexcept {
  constexpr std::size_t least = std::size_t{4} << 10U;
  if (rate_ == 0) return most;
  return static_cast<std::size_t>(
      std::clamp<std::uint64_t>(rate_ / 8, std::min(least, most), most));
}

}  // namespace ucx::tool
