// A read or write that the transport does by itself.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/clock.hpp"
#include "worker/operation.hpp"

namespace ucx::detail {

class peer_region;
class write_tracker;

/// UCX has the caller's memory until its callback: cancelling does not stop a transfer, only the
/// end of the connection does.
class rma_operation final : public operation {
 public:
  /// Each starts a transfer by `key` and returns nothing if it ended within the call, well, or
  /// badly (`ec`). A write goes in transfers of `max_piece` at most, and is done with the last.
  static rma_operation* read(std::shared_ptr<peer_region> region, ucp_rkey_h key,
                             std::uint64_t offset, std::span<std::byte> into,
                             clock::time_point deadline, std::error_code& ec);
  static rma_operation* write(std::shared_ptr<peer_region> region, ucp_rkey_h key,
                              std::shared_ptr<write_tracker> tracker, std::uint64_t offset,
                              std::span<const std::byte> from, std::size_t max_piece,
                              clock::time_point deadline, std::error_code& ec);

  void give_up(errc why) noexcept override;
  void connection_failed(std::error_code why) noexcept override;
  std::string describe() const override;

 protected:
  void recycle() noexcept override;

 private:
  static void on_done(void* request, ucs_status_t status, void* self);
  void begin() noexcept;
  template <class Start>
  void transfer(const Start& start);
  void transfer_ended(ucs_status_t status) noexcept;
  void over();
  rma_operation* posted(std::error_code& ec);

  std::shared_ptr<peer_region> region_;
  std::shared_ptr<write_tracker> tracker_;
  std::uint64_t offset_ = 0;
  std::size_t length_ = 0;
  std::size_t in_flight_ = 0;  // transfers that UCX has
  bool posting_ = false;
  ucs_status_t failure_ = UCS_OK;  // the first of a transfer
  std::error_code given_up_;
};

}  // namespace ucx::detail
