// A region as its context knows it: a number, and how many accesses to it run.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/owned_descriptor.hpp"
#include "ucx/access.hpp"

namespace ucx::detail {

/// Peers' accesses are counted, so that withdrawing can wait for those that run. Thread-safe.
class counted_region {
 public:
  counted_region(const counted_region&) = delete;
  counted_region& operator=(const counted_region&) = delete;

  std::uint64_t id() const noexcept { return id_; }
  void begin_access() noexcept { accesses_.fetch_add(1, std::memory_order_acquire); }
  void end_access() noexcept { accesses_.fetch_sub(1, std::memory_order_release); }
  /// Opens the file that its memory is in, with these rights. Returns nothing where there is none,
  /// peers have less, or the rights do not include reading, which a mapping does.
  virtual owned_descriptor open_file(access rights) const noexcept {
    static_cast<void>(rights);
    return {};
  }
  bool idle() const noexcept { return accesses_.load(std::memory_order_acquire) == 0; }

 protected:
  explicit counted_region(std::uint64_t id) noexcept : id_(id) {}
  ~counted_region() = default;

 private:
  const std::uint64_t id_;
  std::atomic<std::uint32_t> accesses_{0};
};

}  // namespace ucx::detail
