// The answer to a batch of reads: copies of the bytes in a row, on their way to the peer.
#pragma once

#include <cstddef>
#include <vector>

#include "base/intrusive_list.hpp"
#include "connection/piece_sender.hpp"
#include "wire/frame.hpp"

namespace ucx::detail {

class endpoint_core;
class exposed_region;
class range_list;
class region_extras;
struct batch_tag {};

/// Needs the region no more once it has a copy.
class batch_answer final : public piece_sender, public list_hook<batch_tag> {
 public:
  /// Copies what is to be sent; the ranges were checked. Nothing is sent if it throws.
  void copy(const exposed_region& region, const range_list& ranges);
  /// Sends it. It may have ended when this returns.
  void begin(region_extras& owner, endpoint_core& to, const frame& asked);

  endpoint_core& peer() const noexcept { return pieces_endpoint(); }
  /// Ends it as far as UCX has let go of it; may end the object.
  void peer_failed();

 private:
  void pieces_moved() override;

  region_extras* owner_ = nullptr;
  std::vector<std::byte> bytes_;
};

}  // namespace ucx::detail
