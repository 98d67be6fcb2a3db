// Sends a run of bytes as the payloads of frames that fit a segment of the wire each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/intrusive_list.hpp"
#include "connection/piece_shelf.hpp"
#include "ucp/piece_sizes.hpp"
#include "ucp/ucp_api.hpp"
#include "wire/frame.hpp"

namespace ucx::detail {

class endpoint_core;

/// One fragment a piece, sent eagerly: the receiver copies it out of UCX's receive buffer to where
/// it belongs, and UCX assembles nothing. A few pieces are in UCX's hands at a time (of a send in
/// elements, one). Where UCX does not detect failure, nothing but the peer ends a message. There
/// pieces are copies, which a sender that stops leaves to UCX: then its bytes are free at once. So
/// they are over sockets, which copy what has begun.
class piece_sender {
 public:
  piece_sender() noexcept = default;
  piece_sender(const piece_sender&) = delete;
  piece_sender& operator=(const piece_sender&) = delete;

  /// UCX copies messages of this size, and needs no registration of their bytes.
  static constexpr std::size_t small_piece = 1024;
  /// Returns whether UCX did not take so many bytes because it could not register them.
  static bool is_unregistered(const endpoint_core& to, std::size_t size,
                              ucs_status_t status) noexcept;

 protected:
  ~piece_sender();

  /// Prepares to send `bytes` over `endpoint`. `first` is the first frame's header. Later ones
  /// differ in offset and length, and in the digest where they answer a question that wants it.
  void prepare_pieces(endpoint_core& endpoint, const frame& first, std::span<const std::byte> bytes,
                      const frame& asked = {}) noexcept;
  /// Prepares to send `size` bytes that `wrap()` finds, with the headers that it writes.
  void prepare_pieces(endpoint_core& endpoint, std::size_t size) noexcept;
  /// Hands UCX what there is room for, then calls `pieces_moved()`.
  void send_pieces();
  /// Sends no further piece, and leaves the copies to UCX. Returns whether none of the others was
  /// dropped.
  bool stop_pieces() noexcept;
  /// Called when nothing or less than before is in UCX's hands; the last thing done here, so it may
  /// end the object.
  virtual void pieces_moved() = 0;

  /// The message in which a piece is sent.
  struct wrapped_piece {
    unsigned id = 0;  ///< UCX's, of active messages.
    std::size_t header_size = 0;
    std::span<const std::byte> bytes;  ///< At least one.
  };
  /// Writes the header of the piece that begins at `posted()`, and says what its bytes are: a copy
  /// in `piece` where `copies`.
  virtual wrapped_piece wrap(sent_piece& piece, bool copies);
  /// Returns whether the next piece may be sent now; who says no has to call `send_pieces()` later.
  virtual bool may_post() noexcept { return true; }
  /// Gives back what the last piece has taken: UCX refused it, with its `size` bytes.
  virtual void taken_back(std::size_t /*size*/) noexcept {}
  /// Returns whether a piece of a sender that stops need not arrive, if nothing of it has gone.
  virtual bool may_drop_pieces() const noexcept { return false; }
  /// Returns whether the bytes of such a piece can be wrapped again.
  virtual bool can_wrap_again() const noexcept { return true; }
  /// Returns whether so many bytes, which UCX did not take, may go in smaller pieces.
  bool may_shrink(std::size_t size, ucs_status_t status) const noexcept;
  /// From here on pieces are small.
  void shrink(ucs_status_t why);
  /// Returns how long a piece may be that could have `size` bytes.
  std::size_t shrunk(std::size_t size) const noexcept {
    return small_ && size > small_piece ? small_piece : size;
  }
  static constexpr std::size_t largest_copy = piece_sizes::largest_copy;

  /// Returns whether UCX may still read the bytes.
  bool sending() const noexcept { return any_in_flight() || posting_; }
  bool any_in_flight() const noexcept { return !in_flight_.empty(); }
  bool all_posted() const noexcept { return posted_ == size_; }
  bool stopped() const noexcept { return stopped_; }
  std::uint64_t posted() const noexcept { return posted_; }
  endpoint_core& pieces_endpoint() const noexcept { return *endpoint_; }

 private:
  static constexpr std::size_t most_in_flight = 4;

  static void on_sent(void* request, ucs_status_t status, void* piece);
  void post();
  void take_back(sent_piece& piece, std::size_t size) noexcept;
  void ended(sent_piece& sent, ucs_status_t status);
  withdrawn_send withdraw(const sent_piece& piece) const noexcept;

  endpoint_core* endpoint_ = nullptr;
  frame first_;
  frame asked_;
  std::span<const std::byte> bytes_;
  std::uint64_t size_ = 0;
  std::uint64_t posted_ = 0;
  intrusive_list<sent_piece, piece_tag> in_flight_;
  bool posting_ = false;
  bool stopped_ = false;
  bool small_ = false;  // the pieces, because UCX could not register the bytes
};

}  // namespace ucx::detail
