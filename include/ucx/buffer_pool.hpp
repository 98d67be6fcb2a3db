#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <system_error>

#include "ucx/buffer.hpp"
#include "ucx/completion_handler.hpp"
#include "ucx/error.hpp"
#include "ucx/export.hpp"

namespace ucx {

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
  /// the pool's buffers; closed (moved from).
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
