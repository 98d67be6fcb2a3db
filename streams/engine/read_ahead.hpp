// The reads of one stream that are in flight, and how far ahead of the caller they go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "engine/block_pool.hpp"
#include "engine/byte_budget.hpp"
#include "engine/byte_source.hpp"
#include "engine/flow_window.hpp"
#include "engine/ring_queue.hpp"
#include "ucx/request.hpp"

namespace ucx::detail {

/// A queue of adjacent pieces. A first read asks for little. Each further one in sequence asks for
/// four times as much, and for twice as many pieces ahead. Both grow up to a block and to the
/// window. Where reads are scattered, each asks for what the caller wants and no more.
class read_ahead {
 public:
  /// A read that follows no other asks for so much at least: a round trip costs as much with it.
  static constexpr std::size_t first_unit = 1024;

  struct piece {
    std::uint64_t offset = 0;
    std::size_t length = 0;
    block memory;  // none: the bytes go to the caller's memory
    request transfer;
    bool timed = false;  // it was not over as soon as it was asked for
    flow_window::mark asked;

    std::uint64_t end() const noexcept { return offset + length; }
  };

  read_ahead(byte_source& source, block_pool& pool, byte_budget& in_flight, std::size_t block_size,
             std::size_t depth) noexcept
      : source_(source),
        pool_(pool),
        in_flight_(in_flight),
        depth_(depth),
        flow_(in_flight.bound(), block_size) {}
  read_ahead(const read_ahead&) = delete;
  read_ahead& operator=(const read_ahead&) = delete;
  ~read_ahead() { drop(); }

  /// The caller wants bytes from `position` on that it does not have: keeps what was asked for from
  /// there on, gives up the rest. Pieces in flight that belong into `into` as a whole land there
  /// directly, if they have not begun to arrive.
  void begin(std::uint64_t position, std::span<std::byte> into);

  /// Asks for what `into` (at `position`) still lacks, then ahead, not beyond `end`. Without an
  /// `into`, for whatever comes at `position`. REQUIRES: begin(); `position` is where it was, or
  /// the end of what `take_first()` gave since.
  void ask(std::uint64_t position, std::span<std::byte> into, std::uint64_t end);

  /// Waits for the first piece and takes it out. Throws its failure.
  piece take_first();

  /// Gives everything up. Waits only for what goes into the caller's memory, and only where the
  /// source can not give up a read by itself.
  void drop() noexcept;

  bool empty() const noexcept { return pieces_.empty(); }
  const flow_window& flow() const noexcept { return flow_; }

 private:
  static constexpr std::uint64_t nowhere = std::numeric_limits<std::uint64_t>::max();

  static constexpr std::size_t growth = 4;
  /// After `few` reads that follow no other and are not near each other, a read asks for no more
  /// than it wants. A read that was near the one before puts that off for `slow_reader_timeout`
  /// further ones.
  static constexpr int few = 3;
  static constexpr int patience = 64;

  void adapt(std::uint64_t position, std::size_t wanted);
  void ask_demanded(std::uint64_t position, std::span<std::byte> into, std::uint64_t end);
  void ask_direct(std::span<std::byte> into);
  void ask_block(std::uint64_t end);
  void ask_into(std::span<std::byte> into, block&& memory);
  bool is_kept(const block& memory, std::size_t length) const noexcept;
  bool has_room(std::size_t length) const noexcept;
  std::size_t next_length(std::uint64_t end) const noexcept;
  void note_arrivals() noexcept;
  void give_up_first() noexcept;

  byte_source& source_;
  block_pool& pool_;
  byte_budget& in_flight_;
  const std::size_t depth_;
  flow_window flow_;
  ring_queue<piece> pieces_;
  std::size_t asked_bytes_ = 0;        // of the pieces
  std::size_t arrived_ = 0;            // so many of the first pieces have been counted as delivered
  std::uint64_t asked_end_ = nowhere;  // where the next piece begins
  std::uint64_t begun_at_ = nowhere - first_unit;
  std::size_t wanted_ = 0;  // by the caller's last read
  int scattered_ = 0;       // so many reads followed no other; less than none: some were near it
  bool sequential_ = false;
  bool at_once_ = false;   // the last piece was done at once
  std::size_t unit_ = 0;   // bytes of the next piece into a block
  std::size_t ahead_ = 1;  // pieces in flight, those ahead included
};

}  // namespace ucx::detail
