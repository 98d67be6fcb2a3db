#include "ucx/entry.hpp"

namespace ucx {

std::chrono::system_clock::time_point to_system_time(const file_time& at) noexcept {
  using clock = std::chrono::system_clock;
  using std::chrono::seconds;
  // A second less than its range, so that nanoseconds fit behind.
  const auto latest = std::chrono::floor<seconds>(clock::time_point::max()) - seconds(1);
  const auto earliest = std::chrono::ceil<seconds>(clock::time_point::min());
  const std::chrono::sys_seconds whole{seconds(at.seconds)};
  if (whole > latest) return clock::time_point::max();
  if (whole < earliest) return clock::time_point::min();
  return whole +
         std::chrono::duration_cast<clock::duration>(std::chrono::nanoseconds(at.nanoseconds));
}

}  // namespace ucx
