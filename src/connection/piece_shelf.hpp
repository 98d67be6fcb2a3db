// The pieces of a worker: messages with a part of somebody's bytes, in UCX's hands or idle.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "base/intrusive_list.hpp"
#include "cuda/staging_shelf.hpp"
#include "wire/frame.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

class endpoint_core;
class piece_sender;
struct piece_tag {};

/// A message that UCX may still read: its header, and the payload where that is a copy.
struct sent_piece : list_hook<piece_tag> {
  piece_sender* owner = nullptr;  ///< Null, where the sender has left its copy to UCX.
  endpoint_core* endpoint = nullptr;
  void* request = nullptr;    ///< UCX's; null while it has none.
  bool is_left_copy = false;  ///< The connection's quota counts it.
  frame::bytes header = {};
  std::vector<std::byte> copy = {};
  staging_buffer staged = {};  ///< The payload where it came out of a device's memory.
};

/// Owns every piece, so that those that UCX never gives back go with the worker. REQUIRES: external
/// synchronization.
class piece_shelf {
 public:
  /// Buffers that pieces were staged in go back to `staging`.
  explicit piece_shelf(staging_shelf& staging) noexcept : staging_(staging) {}
  explicit piece_shelf(worker_core& worker) noexcept : piece_shelf(worker.staging_shelf()) {}
  piece_shelf(const piece_shelf&) = delete;
  piece_shelf& operator=(const piece_shelf&) = delete;

  sent_piece& take() {
    if (idle_.empty()) {
      idle_.reserve(all_.size() + 1);  // so that giving back needs no memory
      all_.push_back(std::make_unique<sent_piece>());
      return *all_.back();
    }
    sent_piece& taken = *idle_.back();
    idle_.pop_back();
    return taken;
  }
  void give_back(sent_piece& piece) noexcept {
    if (piece.staged) staging_.put_back(std::move(piece.staged));
    if (idle_.size() >= most_copies_kept) piece.copy = std::vector<std::byte>();
    idle_.push_back(&piece);
  }

 private:
  static constexpr std::size_t most_copies_kept = 64;
  staging_shelf& staging_;
  std::vector<std::unique_ptr<sent_piece>> all_;
  std::vector<sent_piece*> idle_;
};

}  // namespace ucx::detail
