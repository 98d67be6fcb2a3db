// The writes of one stream that are in flight, or not known to be visible yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/block_pool.hpp"
#include "engine/byte_budget.hpp"
#include "engine/byte_source.hpp"
#include "engine/extent_set.hpp"
#include "engine/flow_window.hpp"
#include "engine/ring_queue.hpp"
#include "ucx/request.hpp"

namespace ucx::detail {

/// Keeps a window of writes in flight: a write is until a flush right behind it has ended, which
/// tells that it is visible. Once a write is known to have failed, `failed()` says so until
/// `rewind()`, and nothing else may be called.
class write_behind {
 public:
  write_behind(byte_source& source, block_pool& pool, byte_budget& in_flight,
               std::size_t block_size, std::size_t depth) noexcept
      : source_(source),
        pool_(pool),
        in_flight_(in_flight),
        depth_(depth),
        flow_(in_flight.bound(), block_size, least_blocks) {}
  write_behind(const write_behind&) = delete;
  write_behind& operator=(const write_behind&) = delete;

  /// Starts writing the first `length` bytes of `from`, and takes `from` unless it throws.
  void send(std::uint64_t offset, block& from, std::size_t length);
  /// Writes `from` in pieces, and returns when it can be reused.
  void send_direct(std::uint64_t offset, std::span<const std::byte> from);
  /// Throws the failure of a write, if one is known. Waits for nothing.
  void check();
  /// Waits until every write is visible. Costs nothing when all are known to be.
  void flush();
  /// Waits until the write that was started first is visible; returns whether there was one.
  bool wait_for_first();

  /// Returns where bytes from `position` on stop being safe to read, at most `end`. A byte is not
  /// safe while its write is not known to be visible.
  std::uint64_t readable_end(std::uint64_t position, std::uint64_t end);

  /// Returns the end of what was seen to be visible.
  std::uint64_t confirmed_end() const noexcept { return confirmed_end_; }
  /// Returns whether a write failed, and not only a wait for it.
  bool failed() const noexcept { return failed_; }
  /// Forgets the writes, and returns the first byte that is not known to be visible: `unsent` where
  /// everything before that is.
  std::uint64_t rewind(std::uint64_t unsent);

  const flow_window& flow() const noexcept { return flow_; }

 private:
  struct piece {
    std::uint64_t offset = 0;
    std::size_t length = 0;
    block memory;  // none: out of the caller's memory, or it can be reused already
    request transfer;
    request confirmation;
    bool timed = false;  // it was not over as soon as it was started
    flow_window::mark begun;
  };

  /// Bytes on their way to the owner are in the system's buffers, not in the stream's. A few more
  /// of them bridge the times at which the owner does not run.
  static constexpr std::size_t least_blocks = 8;

  /// More than these are not worth telling apart.
  static constexpr std::size_t most_extents = 64;

  void flush_overlapping(std::uint64_t offset, std::size_t length);
  piece& start(std::uint64_t offset, std::span<const std::byte> from);
  void settle(request& transfer);
  void settle_first();
  void make_room(std::size_t length);
  void note_sent() noexcept;
  void reap() noexcept;

  byte_source& source_;
  block_pool& pool_;
  byte_budget& in_flight_;
  const std::size_t depth_;
  flow_window flow_;
  ring_queue<piece> pieces_;  // not known to be visible
  std::size_t sent_ = 0;      // so many of the first have let go of their memory
  std::size_t bytes_ = 0;     // of the pieces
  std::uint64_t confirmed_end_ = 0;
  extent_set unconfirmed_;  // written since everything was known to be visible
  bool failed_ = false;
};

}  // namespace ucx::detail
