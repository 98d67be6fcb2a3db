// Transfers by RMA that UCX emulates: through memory that stays as long as UCX has it, so that each
// can be given up.
#pragma once

#include <ucp/api/ucp.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "base/intrusive_list.hpp"
#include "connection/staged_window.hpp"

namespace ucx::detail {

class endpoint_core;
class staged_transfer;
class staged_transfers;

struct staged_turn_tag {};
struct staged_piece_tag {};

/// A part of a transfer that UCX has. It outlives a transfer that was given up.
struct staged_piece : list_hook<staged_piece_tag> {
  staged_transfers* line = nullptr;
  staged_transfer* owner = nullptr;  ///< Null where that was given up.
  std::shared_ptr<const void> keeps = {};
  std::shared_ptr<const void> lands_in = {};  ///< Of a read without a room.
  std::unique_ptr<std::byte[]> bytes = {};    ///< The room.
  std::size_t kind = 0;                       ///< An index of `rooms`.
  std::size_t offset = 0;
  std::size_t size = 0;
  clock::time_point alone_since = {};  ///< Of a whole piece of a read: it was posted alone then.
};

/// One that waits for its turn: a read, a write, or nothing but the turn. The base of an operation.
class staged_transfer : public list_hook<staged_turn_tag> {
 public:
  staged_transfer(const staged_transfer&) = delete;
  staged_transfer& operator=(const staged_transfer&) = delete;

 protected:
  staged_transfer() noexcept = default;
  virtual ~staged_transfer() = default;

  /// UCX has done all of it, or failed (the first failure): nothing of the caller's is used any
  /// more. Of one without bytes: UCX has all that came before it.
  virtual void staged_ended(ucs_status_t status) noexcept = 0;

  /// Gives a read other memory of the same size, with what has come. Returns false where that is
  /// not known.
  bool move_read(std::span<std::byte> into) noexcept;

  // Set by the operation before it is added.
  std::span<std::byte> into_;             // of a read
  std::shared_ptr<const void> lands_in_;  // keeps `into_`, which then needs no room
  std::span<const std::byte> from_;       // of a write
  std::uint64_t address_ = 0;             // at the peer
  ucp_rkey_h key_of_turn_ = nullptr;
  std::shared_ptr<const void> keeps_;  // as long as UCX may use the key

 private:
  friend class staged_transfers;
  std::size_t size() const noexcept { return into_.size() + from_.size(); }

  std::size_t posted_ = 0;
  std::size_t ended_ = 0;
  bool in_order_ = true;  // the first `ended_` bytes are those that have ended
};

/// The line of a connection's staged transfers. UCX gets their pieces in the order in which they
/// came, up to a bound. So a fence needs nothing more, and a flush waits for its turn. A transfer
/// that is given up leaves its pieces here, where UCX may end them at any time. So the connection
/// stays: dropping it may end a peer that has UCX alone. A part of the connection, under the
/// worker's lock.
class staged_transfers {
 public:
  /// UCX has rooms of so many bytes at once, and so many pieces.
  static constexpr std::size_t most_bytes = std::size_t{2} << 20U;
  static constexpr std::size_t most_pieces = 256;
  /// A read asks for so much at once: each question costs either side two system calls.
  static constexpr std::size_t longest_read = std::size_t{256} << 10U;
  /// So much where it needs no room.
  static constexpr std::size_t longest_landing = std::size_t{1} << 20U;
  /// UCX sends what it emulates in segments as long as this side's, and ends a process whose own
  /// are shorter (tcp_ep.c, `hdr->length <= rx_seg_size`). So long are those of each UCX over TCP,
  /// with room for headers.
  static constexpr std::size_t longest_write = 8000;

  explicit staged_transfers(endpoint_core& connection) noexcept : connection_(connection) {}
  staged_transfers(const staged_transfers&) = delete;
  staged_transfers& operator=(const staged_transfers&) = delete;

  /// It has its turn behind those that are here; that may end it within the call.
  void add(staged_transfer& started) noexcept;
  /// It was given up: nothing of it is begun, and nothing is told to it any more.
  void leave(staged_transfer& given_up) noexcept;
  /// Returns whether no transfer waits for a turn.
  bool empty() const noexcept { return waiting_.empty(); }
  /// Returns whether the peer was ever written to. It may owe answers that only a flush waits for.
  bool has_written() const noexcept { return has_written_; }

 private:
  static constexpr std::array<std::size_t, 5> rooms{0, 256, 8192, std::size_t{64} << 10U,
                                                    longest_read};
  /// Of all rooms, with those that wait to be used again.
  static constexpr std::size_t most_memory = 2 * most_bytes;
  /// Returns the index of the room for the next `size` bytes; the first where they need none.
  static std::size_t kind_of(const staged_transfer& of, std::size_t size) noexcept;
  /// Returns what UCX has of the bound with such a piece.
  static std::size_t counted(std::size_t kind, std::size_t size) noexcept {
    return kind == 0 ? size : rooms[kind];
  }

  static void on_done(void* request, ucs_status_t status, void* piece);
  void post() noexcept;
  bool post_piece(staged_transfer& of);
  std::size_t most_now(clock::time_point now) const noexcept;
  staged_piece& take(std::size_t kind);
  void free_idle() noexcept;
  ucs_status_ptr_t start(staged_piece& piece, const staged_transfer& of);
  void piece_ended(staged_piece& piece, ucs_status_t status) noexcept;
  void give_back(staged_piece& piece) noexcept;
  void fail(staged_transfer& failed, ucs_status_t why) noexcept;

  endpoint_core& connection_;
  intrusive_list<staged_transfer, staged_turn_tag> waiting_;
  intrusive_list<staged_piece, staged_piece_tag> in_flight_;
  std::array<intrusive_list<staged_piece, staged_piece_tag>, rooms.size()> idle_;
  std::vector<std::unique_ptr<staged_piece>> all_;
  staged_window window_{2 * longest_read, most_bytes};
  std::size_t bytes_ = 0;   // in flight, whole rooms where there are rooms
  std::size_t memory_ = 0;  // of all rooms
  bool posting_ = false;
  bool has_written_ = false;
};

}  // namespace ucx::detail
