#pragma once

#include <concepts>
#include <cstddef>
#include <memory_resource>
#include <span>
#include <system_error>
#include <utility>

#include "ucx/completion_handler.hpp"
#include "ucx/error.hpp"
#include "ucx/export.hpp"

namespace ucx {

namespace detail {
class buffer_home;

/// Bytes in one piece: spans, vectors, arrays, and types that convert to a span. `Byte` is const
/// where they are only read.
template <class From, class Byte>
concept span_of_bytes = std::convertible_to<From, std::span<Byte>>;

/// A list of spans of bytes.
template <class From, class Byte>
concept spans_of_bytes =
    !span_of_bytes<From, Byte> && std::convertible_to<From, std::span<const std::span<Byte>>>;
}  // namespace detail

/// Memory that its holder may move into a send. It comes back, or is freed, without a call. It is
/// from the heap, from a memory resource, from a `buffer_pool`, or from elsewhere with a function
/// that frees it.
/// Threads: as any value. The function that frees runs on the thread that destroys the buffer. For
/// a buffer that was sent, or replaced by a receive, it runs on the thread that drives progress.
/// There it is a handler, and must not wait. Its exceptions there, and wherever a handler destroys
/// a buffer, go to the worker's `on_exception`. Elsewhere an exception ends the process, as in any
/// destructor.
class UCXIO_EXPORT buffer {
 public:
  /// Makes an empty buffer, which holds no memory.
  buffer() noexcept = default;
  /// Makes a buffer of `size` bytes from the heap, or an empty one with an error. They are not
  /// initialised.
  /// Errors: no_memory; without a code `std::bad_alloc`.
  explicit buffer(std::size_t size, std::error_code& ec = throws);
  /// Makes a buffer of `size` bytes from `from`, and gives them back to it later. With a
  /// `memory_pool` they may be a CUDA device's. They are not initialised, and not touched.
  /// Lifetime: `from`, until the buffer is freed.
  /// Errors: those that `from` throws.
  buffer(std::pmr::memory_resource& from, std::size_t size);
  /// Takes over `bytes`. `free` is called once, when the buffer dies without `release()`.
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

  /// Returns whether the buffer holds memory. It does not after it was moved from, sent or
  /// released.
  explicit operator bool() const noexcept { return home_ != nullptr; }

  std::byte* data() noexcept { return bytes_.data(); }
  const std::byte* data() const noexcept { return bytes_.data(); }
  /// Returns how many bytes are in use. A send sends these.
  std::size_t size() const noexcept { return size_; }
  std::size_t capacity() const noexcept { return bytes_.size(); }
  std::span<std::byte> bytes() noexcept { return bytes_.first(size_); }
  std::span<const std::byte> bytes() const noexcept { return bytes_.first(size_); }

  /// Changes how many bytes are in use; the memory stays.
  /// Errors: buffer_too_small above `capacity()`.
  void resize(std::size_t size, std::error_code& ec = throws);

  /// Gives the memory up to the caller. The caller frees it as it was allocated: memory from the
  /// heap with `delete[]` of `std::byte`.
  /// Errors: pooled_buffer for memory of a pool, which has to go back there.
  std::span<std::byte> release(std::error_code& ec = throws);

 private:
  friend class detail::buffer_home;
  buffer(std::span<std::byte> bytes, detail::buffer_home& home) noexcept
      : bytes_(bytes), size_(bytes.size()), home_(&home) {}

  std::span<std::byte> bytes_;
  std::size_t size_ = 0;
  detail::buffer_home* home_ = nullptr;
};

}  // namespace ucx
