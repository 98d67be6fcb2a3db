// The writes of one stream that are in flight, or not known to be visible yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "block_pool.hpp"
#include "byte_source.hpp"
#include "extent_set.hpp"
#include "ring_queue.hpp"
#include "ucx/request.hpp"

namespace ucx::detail {

/// Keeps up to `depth` writes in flight. Once a write is known to have failed, `failed()` says so
/// until `rewind()`, and nothing else may be called.
class write_behind {
 public:
  write_behind(byte_source& source, block_pool& pool, std::size_t depth) noexcept
      : source_(source), pool_(pool), depth_(depth) {}
  write_behind(const write_behind&) = delete;
  write_behind& operator=(const write_behind&) = delete;

  /// Starts writing the first `length` bytes of `from`, and takes `from` unless it throws.
  void send(std::uint64_t offset, block& from, std::size_t length);
  /// Writes `from` in pieces of a block, and returns when it can be reused.
  void send_direct(std::uint64_t offset, std::span<const std::byte> from);
  /// Throws the failure of a write, if one is known. Waits for nothing.
  void check();
  /// Waits until every write is visible. Costs nothing when all are known to be.
  void flush();

  /// Returns where bytes from `position` on stop being safe to read: the next byte that was written
  /// and is not known to be visible, at most `end`.
  std::uint64_t readable_end(std::uint64_t position, std::uint64_t end);

  /// Returns whether a write failed, and not only a wait for it.
  bool failed() const noexcept { return failed_; }
  /// Forgets the writes, and returns the first byte that is not known to be visible: `unsent` where
  /// everything before that is.
  std::uint64_t rewind(std::uint64_t unsent);

 private:
  struct piece {
    block memory;
    request transfer;
  };

  /// More than these are not worth telling apart.
  static constexpr std::size_t most_extents = 64;

  void flush_overlapping(std::uint64_t offset, std::size_t length);
  request start(std::uint64_t offset, std::span<const std::byte> from);
  void settle(request& transfer);
  void settle_first();
  void make_room();
  void reap() noexcept;
  byte_source& source_;
  block_pool& pool_;
  const std::size_t depth_;
  ring_queue<piece> pieces_;     // out of our blocks
  ring_queue<request> directs_;  // out of the caller's memory, within one call
  extent_set unconfirmed_;       // written since everything was known to be visible
  bool failed_ = false;
};

}  // namespace ucx::detail
