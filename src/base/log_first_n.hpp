// The first few numbers of many: what is told once for each, and not without end.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace ucx::detail {

class log_first_n {
 public:
  static constexpr std::size_t most = 16;

  /// Returns whether `number` is one of the first few, and was not here before.
  bool add(std::uint64_t number) noexcept {
    const auto end = numbers_.begin() + static_cast<std::ptrdiff_t>(count_);
    if (count_ == most || std::find(numbers_.begin(), end, number) != end) return false;
    numbers_[count_++] = number;
    return true;
  }

 private:
  std::array<std::uint64_t, most> numbers_ = {};
  std::size_t count_ = 0;
};

}  // namespace ucx::detail
