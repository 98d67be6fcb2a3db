// Senders of a peer's region: reads, writes, batches, atomics, notifications, flushes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "ucx/access.hpp"
#include "ucx/buffer.hpp"
#include "ucx/execution_names.hpp"
#include "ucx/execution_senders.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_atomic.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"
#include "ucx/worker.hpp"

namespace ucx {
inline namespace UCXIO_EXECUTION_NAMES {
namespace senders {

/// A read into memory of the operation's own, and a write from it.
struct owned_read {
  std::uint64_t offset;
  buffer memory;
  io_options options;
  request operator()(remote_region& from) {
    return from.start_read_at(offset, memory.bytes(), options);
  }
};
struct owned_write {
  std::uint64_t offset;
  buffer memory;
  io_options options;
  request operator()(remote_region& to) {
    return to.start_write_at(offset, memory.bytes(), options);
  }
};
struct take_memory {
  template <class Call>
  buffer operator()(Call& call, request&) const noexcept {
    return std::move(call.memory);
  }
};

/// An atomic access whose old number is kept in the operation state.
template <class Integer>
struct fetching_access {
  std::uint64_t offset;
  atomic_operation operation;
  Integer operand;
  io_options options;
  Integer previous = 0;
  request operator()(remote_region& of) {
    return remote_atomic<Integer>(of, offset).start(operation, operand, &previous, options);
  }
};
template <class Integer>
struct compared_access {
  std::uint64_t offset;
  Integer expected;
  Integer desired;
  io_options options;
  Integer previous = 0;
  request operator()(remote_region& of) {
    return remote_atomic<Integer>(of, offset)
        .start_compare_exchange(expected, desired, previous, options);
  }
};
struct take_previous {
  template <class Access>
  auto operator()(Access& access, request&) const noexcept {
    return access.previous;
  }
};

}  // namespace senders

/// Returns the sender of `remote_region::start_read_at`.
inline auto async_read_at(remote_region& from, std::uint64_t offset, std::span<std::byte> into,
                          const io_options& options = {}) {
  return senders::over(from, [offset, into, options](remote_region& region) {
    return region.start_read_at(offset, into, options);
  });
}
/// Like that, into all bytes of a buffer that the operation owns. Its value is the buffer. After an
/// error or a stop the buffer is gone.
inline auto async_read_at(remote_region& from, std::uint64_t offset, buffer&& into,
                          const io_options& options = {}) {
  return senders::over<senders::take_memory>(from,
                                             senders::owned_read{offset, std::move(into), options});
}

/// Returns the sender of `remote_region::start_write_at`. It completes when `from` can be reused.
/// The bytes are visible at the peer after `async_flush`.
inline auto async_write_at(remote_region& to, std::uint64_t offset, std::span<const std::byte> from,
                           const io_options& options = {}) {
  return senders::over(to, [offset, from, options](remote_region& region) {
    return region.start_write_at(offset, from, options);
  });
}
/// Like that, from a buffer that the operation owns. Its value is the buffer.
inline auto async_write_at(remote_region& to, std::uint64_t offset, buffer&& from,
                           const io_options& options = {}) {
  return senders::over<senders::take_memory>(
      to, senders::owned_write{offset, std::move(from), options});
}

/// Returns the sender of `remote_region::start_read_batch`, or `start_write_batch`.
/// Lifetime: also the list of pieces, until `start()` has returned.
inline auto async_read_batch(remote_region& from, std::span<const read_piece> pieces,
                             const io_options& options = {}) {
  return senders::over(from, [pieces, options](remote_region& region) {
    return region.start_read_batch(pieces, options);
  });
}
inline auto async_write_batch(remote_region& to, std::span<const write_piece> pieces,
                              const io_options& options = {}) {
  return senders::over(to, [pieces, options](remote_region& region) {
    return region.start_write_batch(pieces, options);
  });
}

/// Returns the sender of `remote_atomic::start`. Its value is the old number.
template <remote_integer Integer>
auto async_fetch(remote_region& of, std::uint64_t offset, atomic_operation operation,
                 Integer operand, const io_options& options = {}) {
  return senders::over<senders::take_previous>(
      of, senders::fetching_access<Integer>{offset, operation, operand, options});
}
/// Returns the sender of `remote_atomic::start_compare_exchange`. Its value is the old number.
template <remote_integer Integer>
auto async_compare_exchange(remote_region& of, std::uint64_t offset, Integer expected,
                            Integer desired, const io_options& options = {}) {
  return senders::over<senders::take_previous>(
      of, senders::compared_access<Integer>{offset, expected, desired, options});
}

/// Returns the sender of `remote_region::start_notify`.
inline auto async_notify(remote_region& of, std::uint64_t value, const io_options& options = {}) {
  return senders::over(
      of, [value, options](remote_region& region) { return region.start_notify(value, options); });
}

/// Returns the sender of `remote_region::start_flush`.
inline auto async_flush(remote_region& written, const io_options& options = {}) {
  return senders::over(written,
                       [options](remote_region& region) { return region.start_flush(options); });
}
/// Returns the sender of `worker::start_flush`: of all connections.
inline auto async_flush(worker& driven, const io_options& options = {}) {
  return senders::over(driven, [options](worker& each) { return each.start_flush(options); });
}

}  // namespace UCXIO_EXECUTION_NAMES
}  // namespace ucx
