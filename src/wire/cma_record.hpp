// The record of memory that a process lends to other processes of the host.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <type_traits>

namespace ucx::detail {

/// Holds as long as the lent bytes may be read. A reader reads the bytes first, then the record: if
/// that is unchanged, the bytes were the lent ones.
struct alignas(32) cma_record {
  /// Three numbers that tell it from all else that its owner lends.
  using subject = std::array<std::uint64_t, 3>;
  /// The content that a reader compares.
  struct content {
    std::uint64_t token = 0;
    subject about = {};
    friend bool operator==(const content&, const content&) = default;
  };

  /// REQUIRES: `token` is not 0.
  void begin(std::uint64_t token, const subject& about) noexcept {
    about_ = about;
    token_.store(token, std::memory_order_release);
  }
  /// From here on no reader takes the bytes that it reads for the lent ones.
  void end() noexcept {
    if (!lends()) return;
    token_.store(0, std::memory_order_relaxed);
    // Before anything that is written to that memory from here on.
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  bool lends() const noexcept { return token_.load(std::memory_order_relaxed) != 0; }

 private:
  std::atomic<std::uint64_t> token_{0};
  subject about_ = {};
};
// Its bytes are read as those of a `content`.
static_assert(sizeof(cma_record) == sizeof(cma_record::content));
static_assert(std::is_standard_layout_v<cma_record>);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace ucx::detail
