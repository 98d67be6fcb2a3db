// Sends a run of bytes as the payloads of frames that fit a segment of the wire each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "detail/frame.hpp"
#include "detail/ucp_api.hpp"

namespace ucx::detail {

class endpoint_core;

/// One fragment a piece, sent eagerly: the receiver copies it out of UCX's receive buffer to where
/// it belongs, and UCX assembles nothing. A few pieces are in UCX's hands at a time.
class piece_sender {
 public:
  piece_sender() noexcept = default;
  piece_sender(const piece_sender&) = delete;
  piece_sender& operator=(const piece_sender&) = delete;

 protected:
  ~piece_sender();

  /// Prepares to send `bytes` over `endpoint`; `first` is the first frame's header, and later ones
  /// differ in offset and length.
  void prepare_pieces(endpoint_core& endpoint, const frame& first,
                      std::span<const std::byte> bytes) noexcept;
  /// Hands UCX what there is room for, then calls `pieces_moved()`.
  void send_pieces();
  /// Sends no further piece.
  void stop_pieces() noexcept { stopped_ = true; }
  /// Called when nothing or less than before is in UCX's hands; the last thing done here, so it may
  /// end the object.
  virtual void pieces_moved() = 0;

  /// Returns whether UCX may still read the bytes.
  bool sending() const noexcept { return in_flight_ > 0 || posting_; }
  bool all_posted() const noexcept { return posted_ == bytes_.size(); }
  bool stopped() const noexcept { return stopped_; }
  std::uint64_t posted() const noexcept { return posted_; }
  endpoint_core& pieces_endpoint() const noexcept { return *endpoint_; }

 private:
  static constexpr std::size_t most_in_flight = 4;
  struct piece {
    piece_sender* owner = nullptr;
    bool busy = false;
    frame::bytes header = {};
  };

  static void on_sent(void* request, ucs_status_t status, void* piece);
  void post(piece& free);
  void ended(piece& sent, ucs_status_t status);

  endpoint_core* endpoint_ = nullptr;
  frame first_;
  std::span<const std::byte> bytes_;
  std::uint64_t posted_ = 0;
  unsigned in_flight_ = 0;
  bool posting_ = false;
  bool stopped_ = false;
  std::array<piece, most_in_flight> pieces_;
};

}  // namespace ucx::detail
