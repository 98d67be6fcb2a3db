// Memory for messages: buffers, and pools of them.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "ucx/completion_handler.hpp"
#include "ucx/error.hpp"
#include "ucx/version.hpp"

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

namespace detail {
class buffer_pool_core;
struct core_access;
}  // namespace detail

/// The options of a pool.
struct buffer_pool_options {
  std::size_t size = 64 << 10;  ///< Bytes of each buffer; not 0.
  std::size_t count = 16;       ///< How many buffers there are; not 0.
};

/// A fixed number of buffers of one size, allocated at once. The program takes a buffer, fills it
/// and sends it; the buffer comes back when the send is done. Or a receive fills it
/// (`worker::start_receive`), and it comes back when it dies. Buffers belong to no connection: a
/// pool may serve any number of connections and workers. While the pool is empty, the program's
/// sends and receives have to wait: memory does not grow. Buffers may outlive their pool.
/// Threads: sharing one object is safe.
class UCXIO_EXPORT buffer_pool {
 public:
  /// Allocates all buffers.
  /// Errors: bad_pool (a size or count of 0, or more bytes than can be), no_memory.
  explicit buffer_pool(const buffer_pool_options& options = {}, std::error_code& ec = throws);
  buffer_pool(buffer_pool&& other) noexcept;
  buffer_pool& operator=(buffer_pool&& other) noexcept;
  ~buffer_pool();

  /// Takes a buffer with `size` bytes in use. Without a `size`, the whole buffer is in use.
  /// Errors: would_block when every buffer is out; buffer_too_small where `size` is above that of
  /// the pool's buffers; closed (moved from); forked_child (also of a receive into the pool).
  buffer take(std::optional<std::size_t> size = {}, std::error_code& ec = throws);

  /// Returns whether `candidate` belongs to this pool.
  bool owns(const buffer& candidate) const noexcept;
  std::size_t available() const noexcept;
  std::size_t count() const noexcept;

  /// Calls `handler` once, when a buffer is free that no receive waits for. If one is free now, the
  /// call is made now, on this thread. Otherwise it is made on the thread on which a buffer comes
  /// back. That is the thread that destroys the buffer. For a buffer that was sent, it is the
  /// thread that drives progress, in a handler. `handler` may take buffers, and may call
  /// `when_available` again to hear of the next one. It must not wait. There is one handler at a
  /// time: a later call, or the end of the pool, destroys a handler that was not called yet.
  /// Errors: an exception of `handler` leaves this call where it is called now. In a handler it
  /// goes to the worker's `on_exception`. Where the program itself destroys a buffer, it ends the
  /// process.
  void when_available(move_only_handler<> handler);

#if UCXIO_OLD_NAMES
  [[deprecated("it is what the options said")]] std::size_t buffer_size() const noexcept;
  [[deprecated("take({}, ec)")]] buffer take(std::error_code& ec) { return take({}, ec); }
#endif

 private:
  friend struct detail::core_access;
  std::shared_ptr<detail::buffer_pool_core> core_;
};

}  // namespace ucx
