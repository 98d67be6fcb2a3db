// Memory of an owner that processes of the host may map: a file in memory, which no name leads to.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/owned_descriptor.hpp"
#include "base/result.hpp"
#include "ucx/remote_descriptor.hpp"

namespace ucx::detail {

/// The stamp in a separate page behind the bytes. A process that maps the file learns from it
/// whether the file is the one that a descriptor means, and whether it still counts. Its owner
/// writes it and never reads it.
struct memory_stamp {
  static constexpr std::uint64_t expected_mark = 0x75637869'6f6d656dU;

  std::uint64_t mark = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t region = 0;
  std::uint64_t withdrawn = 0;  ///< By `std::atomic_ref`.
};

/// No region in such a file is longer.
inline constexpr std::uint64_t largest_memory_file = std::uint64_t{1} << 62U;

/// Returns how long a file for so many bytes is, and where its stamp begins.
/// REQUIRES: `size` is at most the largest.
std::uint64_t memory_file_size(std::uint64_t size) noexcept;
std::uint64_t memory_stamp_offset(std::uint64_t size) noexcept;

/// Zeroed bytes in such a file. It can neither shrink nor grow, so that no process that maps it is
/// killed for touching it. Others can not map it for writing, unless they may write.
class shared_memory {
 public:
  /// Commits `size` bytes. Errors: no_memory (there is not as much); not_supported (the system has
  /// no such files, or allows no more of them: the text says why).
  /// Cost: some tenths of a microsecond a KiB.
  static result<std::unique_ptr<shared_memory>> make(std::uint64_t size, bool peers_write,
                                                     std::uint64_t incarnation,
                                                     std::uint64_t region);
  shared_memory(const shared_memory&) = delete;
  shared_memory& operator=(const shared_memory&) = delete;
  /// Withdraws it, and lets go. Peers that map it keep what it held.
  ~shared_memory();

  std::byte* data() const noexcept { return data_; }
  memfd_handle location() const noexcept { return location_; }
  /// Opens the file once more, for a peer. One that is not opened for writing can not be mapped for
  /// it. Nothing where that fails.
  owned_descriptor reopen(bool writes) const noexcept;

 private:
  shared_memory(int file, std::uint64_t size) noexcept : file_(file), size_(size) {}
  int commit() noexcept;
  void stamp(std::uint64_t incarnation, std::uint64_t region) noexcept;
  bool seal(bool peers_write) noexcept;
  bool locate() noexcept;

  int file_;
  std::uint64_t size_;
  std::byte* data_ = nullptr;
  memfd_handle location_;
};

}  // namespace ucx::detail
