#pragma once

#include <cstddef>
#include <memory>
#include <system_error>

#include "ucx/buffer.hpp"
#include "ucx/completion_handler.hpp"
#include "ucx/export.hpp"

namespace ucx {

namespace detail {
class buffer_pool_core;
struct core_access;
}  // namespace detail

/// How a pool is made.
struct buffer_pool_options {
  std::size_t size = 64 << 10;  ///< Bytes of each buffer; not 0.
  std::size_t count = 16;       ///< How many buffers there are; not 0.
};

/// So many buffers of one size, allocated at once: taken, filled, sent, and back by themselves when
/// the send is done; or filled by receives (`worker::start_receive`), and back when they die. One
/// pool may serve any number of connections and workers, or each its own: no buffer is foreign to a
/// connection. When it is empty sends of the program's, and its receives, have to wait: memory does
/// not grow. Buffers may outlive their pool.
/// Threads: sharing one object is safe.
class UCXIO_EXPORT buffer_pool {
 public:
  /// Errors: bad_pool (a size or count of 0, or more bytes than can be), no_memory.
  explicit buffer_pool(const buffer_pool_options& options = {});
  buffer_pool(const buffer_pool_options& options, std::error_code& ec);
  buffer_pool(buffer_pool&& other) noexcept;
  buffer_pool& operator=(buffer_pool&& other) noexcept;
  ~buffer_pool();

  /// Takes a buffer, with all its bytes in use, or `size`. Errors: would_block when every buffer is
  /// out; buffer_too_small where `size` is above `buffer_size()`; closed (moved from).
  buffer take();
  buffer take(std::error_code& ec);
  buffer take(std::size_t size);
  buffer take(std::size_t size, std::error_code& ec);

  /// Returns whether `candidate` is of this pool.
  bool owns(const buffer& candidate) const noexcept;
  std::size_t available() const noexcept;
  std::size_t count() const noexcept;
  std::size_t buffer_size() const noexcept;

  /// Calls `handler` once, when a buffer is back that no receive waits for; now, on this thread, if
  /// there is one. Else on the thread on which the buffer comes back: the one that destroys it, or,
  /// of a buffer that was sent, as a handler on the thread that drives progress. There it may take
  /// buffers and call this again (that is how to be told always), and must not wait. What it throws
  /// comes out of this call where it is called now; in a handler it goes to the worker's
  /// `on_exception`; where the program itself destroys a buffer it ends the process.
  /// One at a time: a handler that has not been called yet is destroyed, and so is it with the
  /// pool.
  void when_available(move_only_handler<> handler);

 private:
  friend struct detail::core_access;
  std::shared_ptr<detail::buffer_pool_core> core_;
};

}  // namespace ucx
