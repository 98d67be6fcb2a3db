// Where a receive puts what it gets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <system_error>

#include "base/clock.hpp"
#include "memory/buffer_waiter.hpp"
#include "message/byte_runs.hpp"
#include "message/receive_place.hpp"
#include "ucx/buffer.hpp"
#include "ucx/error.hpp"
#include "ucx/receive_target.hpp"

namespace ucx::detail {

class buffer_pool_core;
class worker_core;

/// Memory of the caller's, or memory that is made when the length of the message is known. The
/// latter is allocated, or a buffer of a pool. While the pool has none, this stands in the pool's
/// line. Under the worker's lock.
class landing_place final : private buffer_waiter {
 public:
  landing_place() noexcept = default;
  landing_place(const landing_place&) = delete;
  landing_place& operator=(const landing_place&) = delete;

  /// Begins a new receive; everything else is as `end()` left it. Errors, of memory of a device's:
  /// as of `byte_runs::find_devices`. Begins nothing if it throws std::bad_alloc.
  std::error_code begin(worker_core& worker, std::span<std::byte> into);
  std::error_code begin(worker_core& worker, const receive_place& into);
  /// The receive is over, and is about to be recycled: lets go of the caller's memory.
  void end() noexcept;

  /// Returns whether there is a place for a message of this length, or never will be. Else it
  /// stands in the pool's line, and the worker is told when there is a buffer.
  bool find(std::uint64_t length) { return !pool_ || find_buffer(length); }
  /// It wants no buffer for now: in the line it would get the next one of somebody who has a
  /// message. REQUIRES: a pool.
  void leave_line() noexcept;
  /// It wants none any more, and gives back what it did not need.
  void leave_pool() noexcept {
    if (pool_) give_up_pool();
  }

  /// Makes room for a message of this length. Errors: message_truncated, no_memory.
  std::error_code prepare(std::uint64_t length) {
    if (made_ != nullptr) return make(length);
    return length > into_.size() ? make_error_code(errc::message_truncated) : std::error_code();
  }
  /// Copies `bytes` to `offset`; there is room for them. Errors: as of `byte_runs::copy_in`.
  std::error_code copy_in(std::size_t offset, std::span<const std::byte> bytes,
                          clock::time_point until) const noexcept {
    return into_.copy_in(offset, bytes, until);
  }
  /// The whole message came: makes room for it, and copies it there.
  std::error_code fill(std::span<const std::byte> payload, clock::time_point until) {
    if (made_ == nullptr && payload.size() <= into_.size()) {
      return into_.copy_in(0, payload, until);
    }
    const std::error_code ec = prepare(payload.size());
    return ec ? ec : into_.copy_in(0, payload, until);
  }
  /// It ended like this; returns what that means. All of a message that was to come in parts is
  /// there, but their table may be wrong.
  std::error_code ended(std::error_code outcome) noexcept {
    return parts_ == nullptr || outcome ? outcome : parts_->find_parts();
  }

  bool on_device() const noexcept { return into_.on_device(); }
  memory_kind kind() const noexcept { return into_.kind(); }
  const byte_runs<std::byte>& bytes() const noexcept { return into_; }

 private:
  bool find_buffer(std::uint64_t length);
  std::error_code make(std::uint64_t length);
  void give_up_pool() noexcept;
  void give_back(buffer&& unwanted) noexcept;
  void buffer_came() noexcept override;

  byte_runs<std::byte> into_;
  buffer* made_ = nullptr;
  message_parts* parts_ = nullptr;
  std::size_t most_ = 0;
  std::shared_ptr<buffer_pool_core> pool_;
  buffer buffer_;                  // of the pool, for the message that is being taken
  worker_core* worker_ = nullptr;  // who is told of buffers; where it is not the caller's memory
};

}  // namespace ucx::detail
