// A read or write that the transport does by itself.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/clock.hpp"
#include "worker/operation.hpp"

namespace ucx::detail {

class peer_region;
class write_tracker;

/// UCX has the caller's memory until its callback: cancelling does not stop a transfer, only the
/// end of the connection does.
class rma_operation : public operation {
 public:
  /// Each starts a transfer by `key` and returns nothing if it ended within the call, well, or
  /// badly (`ec`).
  static rma_operation* read(std::shared_ptr<peer_region> region, ucp_rkey_h key,
                             std::uint64_t offset, std::span<std::byte> into,
                             clock::time_point deadline, std::error_code& ec);
  static rma_operation* write(std::shared_ptr<peer_region> region, ucp_rkey_h key,
                              std::shared_ptr<write_tracker> tracker, std::uint64_t offset,
                              std::span<const std::byte> from, clock::time_point deadline,
                              std::error_code& ec);

  void give_up(errc why) noexcept override;
  void connection_failed(std::error_code why) noexcept override;
  std::string describe() const override;
  request_attributes attributes() const override {
    return {.kind = tracker_ ? operation_kind::write : operation_kind::read, .size = length_};
  }
  std::optional<int> own_ucx_status() const noexcept override {
    return given_up_ || failure_ == UCS_OK ? std::optional<int>() : failure_;
  }

 protected:
  void recycle() noexcept override;

  /// Starts a life; a write has a tracker.
  void begin(std::shared_ptr<peer_region> region, std::shared_ptr<write_tracker> tracker,
             std::uint64_t offset, std::size_t length, clock::time_point deadline);
  /// The last line of a start: what it returns.
  rma_operation* posted(std::error_code& ec);
  /// UCX has nothing of the caller's any more. Inside of a start, `posted()` goes on.
  void transfer_ended(ucs_status_t status);
  /// As before, of a failure that UCX tells the connection of, too: also inside of a start.
  void transfer_lost(ucs_status_t status);
  /// Returns whether a start is to end with `posted()`.
  bool is_posting() const noexcept { return posting_; }
  /// Ends it early, where UCX has nothing of the caller's.
  void abandon(std::error_code why) noexcept;
  /// Returns whether only UCX's word about its failure is waited for.
  bool is_unclear() const noexcept { return unclear_; }
  void forget() noexcept;
  const peer_region& region() const noexcept { return *region_; }

 private:
  static void on_done(void* request, ucs_status_t status, void* self);
  template <class Start>
  void transfer(const Start& start);
  void over();
  void finish() noexcept;
  std::error_code outcome() const noexcept;

  std::shared_ptr<peer_region> region_;
  std::shared_ptr<write_tracker> tracker_;
  std::uint64_t offset_ = 0;
  std::size_t length_ = 0;
  bool in_flight_ = false;
  bool posting_ = false;
  bool unclear_ = false;  // UCX has nothing of it any more
  ucs_status_t failure_ = UCS_OK;
  std::error_code given_up_;
};

}  // namespace ucx::detail
