#pragma once

#include <cstddef>
#include <memory_resource>
#include <span>
#include <system_error>
#include <utility>

#include "ucx/completion_handler.hpp"
#include "ucx/export.hpp"

namespace ucx {

namespace detail {
class buffer_home;
}

/// Memory that its holder may move into a send, and that comes back, or is freed, by itself: of the
/// heap, of a memory resource, of somebody else with a function that frees it, or of a
/// `buffer_pool`.
/// Threads: as any value. The function that frees is called on the thread that destroys the buffer,
/// or, of one that was sent or replaced by a receive, as a handler on the thread that drives
/// progress: it must not wait. What it throws there, or wherever a handler destroys a buffer, goes
/// to the worker's `on_exception`; else it ends the process, as in any destructor.
class UCXIO_EXPORT buffer {
 public:
  /// Makes an empty buffer, which holds nothing.
  buffer() noexcept = default;
  /// Makes a buffer of `size` bytes of the heap; they are not initialised.
  explicit buffer(std::size_t size);
  /// Likewise; empty with an error. Errors: no_memory.
  buffer(std::size_t size, std::error_code& ec) noexcept;
  /// Makes a buffer of `size` bytes of `from`, which is given them back: a `memory_pool` gives
  /// those of a CUDA device. They are not initialised, and not touched. Lifetime: `from`, until the
  /// buffer is freed. Errors: what `from` throws.
  buffer(std::pmr::memory_resource& from, std::size_t size);
  /// Takes over `bytes`; `free` is called once, when the buffer dies unreleased.
  buffer(std::span<std::byte> bytes, move_only_handler<std::span<std::byte>> free);

  buffer(buffer&& other) noexcept
      : bytes_(std::exchange(other.bytes_, {})),
        size_(std::exchange(other.size_, 0)),
        home_(std::exchange(other.home_, nullptr)) {}
  buffer& operator=(buffer&& other) noexcept {
    buffer taken(std::move(other));
    std::swap(bytes_, taken.bytes_);
    std::swap(size_, taken.size_);
    std::swap(home_, taken.home_);
    return *this;
  }
  ~buffer();

  /// Returns whether it holds memory: not after it was moved from, sent or released.
  explicit operator bool() const noexcept { return home_ != nullptr; }

  std::byte* data() noexcept { return bytes_.data(); }
  const std::byte* data() const noexcept { return bytes_.data(); }
  /// Returns how many bytes are in use: what a send sends.
  std::size_t size() const noexcept { return size_; }
  std::size_t capacity() const noexcept { return bytes_.size(); }
  std::span<std::byte> bytes() noexcept { return bytes_.first(size_); }
  std::span<const std::byte> bytes() const noexcept { return bytes_.first(size_); }

  /// Changes how many bytes are in use; the memory stays. Errors: buffer_too_small above
  /// `capacity()`.
  void resize(std::size_t size);
  void resize(std::size_t size, std::error_code& ec) noexcept;

  /// Gives the memory up to the caller, who frees it as it was allocated: `delete[]` of `std::byte`
  /// for memory of the heap. Errors: pooled_buffer for memory of a pool, which has to go back.
  std::span<std::byte> release();
  std::span<std::byte> release(std::error_code& ec) noexcept;

 private:
  friend class detail::buffer_home;
  buffer(std::span<std::byte> bytes, detail::buffer_home& home) noexcept
      : bytes_(bytes), size_(bytes.size()), home_(&home) {}

  std::span<std::byte> bytes_;
  std::size_t size_ = 0;
  detail::buffer_home* home_ = nullptr;
};

}  // namespace ucx
