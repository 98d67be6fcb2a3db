// A read or write by RMA that UCX emulates, in pieces.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <system_error>

#include "connection/staged_transfers.hpp"
#include "region/paths/rma_operation.hpp"

namespace ucx::detail {

/// UCX has memory of the connection's only, or memory that the pieces keep. So it ends at once
/// where it is given up, and the connection stays. Pieces that UCX has by then may still reach the
/// peer.
class staged_operation final : public rma_operation, private staged_transfer {
 public:
  /// Like the functions of `rma_operation`. A write is done when UCX has all of the bytes.
  /// `keeper`: null, or what keeps `into`, where UCX may then write behind the end of a read that
  /// failed.
  static rma_operation* read(std::shared_ptr<peer_region> region, ucp_rkey_h key,
                             std::uint64_t offset, std::span<std::byte> into,
                             std::shared_ptr<const void> keeper, clock::time_point deadline,
                             std::error_code& ec);
  static rma_operation* write(std::shared_ptr<peer_region> region, ucp_rkey_h key,
                              std::shared_ptr<write_tracker> tracker, std::uint64_t offset,
                              std::span<const std::byte> from, clock::time_point deadline,
                              std::error_code& ec);

  void give_up(errc why) noexcept override;
  void connection_failed(std::error_code why) noexcept override;
  bool rebind(std::span<std::byte> into) noexcept override;

 protected:
  void recycle() noexcept override;

 private:
  void staged_ended(ucs_status_t status) noexcept override;
  rma_operation* join(ucp_rkey_h key, std::uint64_t offset, std::error_code& ec);
  void leave(std::error_code why) noexcept;
};

}  // namespace ucx::detail
