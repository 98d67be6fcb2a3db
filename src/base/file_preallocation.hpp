// Room on the disk that is reserved ahead of a file that grows.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ucx::detail {

/// ext4 looks for blocks, counts them and gives them back one by one. In blocks that are reserved
/// already, writing takes two thirds of the time. Naming the file then takes no time, and freeing
/// it half the time. Other file systems reserve by themselves, or gain nothing: there, nothing is
/// done.
///
/// For a new file that one thread at a time writes from its beginning on, and that nothing else
/// changes. A failure is not reported: the write itself then tells what is wrong.
class file_preallocation {
 public:
  /// Reserves nothing.
  file_preallocation() noexcept = default;
  /// `descriptor` is an empty file that stays open as long as this is used.
  explicit file_preallocation(int descriptor) noexcept : descriptor_(descriptor) {}

  /// Returns whether files of this directory gain by it. May take as long as a disk does.
  static bool helps_in(int directory) noexcept;

  /// Before `length` bytes are written at `offset`.
  void reserve_for(std::uint64_t offset, std::size_t length) noexcept;
  /// Frees the blocks that were not written. Nothing is reserved from here on. Writes nothing.
  void give_back() noexcept;

 private:
  int descriptor_ = -1;
  std::uint64_t end_ = 0;       // of what was written without a gap
  std::uint64_t reserved_ = 0;  // up to there
};

}  // namespace ucx::detail
