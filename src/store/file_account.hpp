// The quota of a store, and what it counts for a file that is being written.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

namespace ucx::detail {

class store_file;

/// The bytes that the files of a store have together. Safe from any thread.
class store_quota {
 public:
  store_quota(std::uint64_t limit, std::uint64_t used) noexcept : limit_(limit), used_(used) {}
  /// Returns false, and counts nothing, where there is no room for so many more.
  bool charge(std::uint64_t growth) noexcept;
  void refund(std::uint64_t bytes) noexcept;

 private:
  const std::uint64_t limit_;
  std::atomic<std::uint64_t> used_;
};

/// A file grows when a write is taken, before the disk has it. Where the disk refuses the write,
/// the file's real size is counted as soon as no write is on its way. Safe from any thread.
class file_account {
 public:
  file_account(std::shared_ptr<store_quota> quota, std::uint64_t size) noexcept
      : quota_(std::move(quota)), size_(size) {}

  std::uint64_t size() const noexcept { return size_.load(std::memory_order_relaxed); }
  /// Returns whether a write was taken that the disk does not have.
  bool is_written() const noexcept;

  /// Takes a write that ends at `end`. Errors: no_space; no_such_name (nothing is counted for the
  /// file any more); busy (it gets another size); what an earlier write failed with, while others
  /// are still on their way.
  std::error_code take(std::uint64_t end) noexcept;
  /// Takes a write back that is not going to be done: the last one that was taken.
  void take_back(std::uint64_t size_before) noexcept;
  /// Is told, in order, how each write that was taken ended.
  void wrote(const store_file& file, std::error_code ec) noexcept;
  /// Takes a change of the size; nothing else is taken until it is `resized`. Errors: no_space;
  /// busy (a write is on its way); no_such_name.
  std::error_code begin_resize(std::uint64_t size) noexcept;
  /// Counts what the file has then.
  void resized(const store_file& file) noexcept;
  /// Gives back what is counted for a file that has no name, and will not have one.
  void abandon() noexcept;

 private:
  void count(std::optional<std::uint64_t> real) noexcept;

  const std::shared_ptr<store_quota> quota_;
  mutable std::mutex mutex_;
  std::atomic<std::uint64_t> size_;
  std::size_t pending_ = 0;
  std::error_code failure_;
  bool resizing_ = false;  // is pending, too
  bool abandoned_ = false;
};

}  // namespace ucx::detail
