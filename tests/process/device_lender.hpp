// Memory of the peer's that it has of the driver itself: of cuMemMap, or of a pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpu/driver_memory.hpp"
#include "support/bytes/pattern.hpp"
#include "ucx/memory_resources.hpp"

namespace ucx::test {

/// One block at a time, on the first device.
class device_lender {
 public:
  /// Makes memory of `what`: "mapped" or "pooled", or "closed_" before it, which was made without
  /// descriptors. Returns `size` bytes from byte 1000 on, which hold a pattern.
  std::span<std::byte> make(const std::string& what, std::size_t size, std::uint64_t seed) {
    if (!program_) program_.emplace();
    using handles = driver_memory::handles;
    const handles types = what.starts_with("closed") ? handles::none : handles::descriptors;
    constexpr std::size_t before = 1000;
    constexpr std::size_t part = driver_memory::granularity;
    memory_ = what.ends_with("pooled")
                  ? driver_memory::pooled(before + size + 1, types)
                  : driver_memory::mapped(std::vector((before + size) / part + 1, part), types);
    const std::span<std::byte> made = memory_->bytes().subspan(before, size);
    copy_memory(made.data(), pattern(size, seed).data(), size);
    return made;
  }
  /// Writes something else there, if there is any.
  void overwrite() {
    if (!memory_) return;
    const std::vector<std::byte> other(memory_->bytes().size(), std::byte{0xFF});
    copy_memory(memory_->bytes().data(), other.data(), other.size());
  }
  void free() { memory_.reset(); }

 private:
  std::optional<driver_program> program_;
  std::unique_ptr<driver_memory> memory_;
};

}  // namespace ucx::test
