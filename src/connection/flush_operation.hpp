// Waits until the writes of a handle are visible at the peer, by whatever way they went.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/intrusive_list.hpp"
#include "connection/staged_transfers.hpp"
#include "connection/write_tracker.hpp"
#include "worker/operation.hpp"

namespace ucx::detail {

class posted_operations;

/// First UCX's flush where writes went by RMA, behind those that UCX has not got yet. Then the
/// owner's confirmations of messages, and the end of what was posted.
class flush_operation final : public operation,
                              public list_hook<flush_tag>,
                              private staged_transfer {
 public:
  /// Starts a flush of `tracker`'s writes; without a tracker, of all writes over the connection,
  /// whose failures the trackers tell.
  void begin(worker_core& worker, std::shared_ptr<endpoint_core> endpoint,
             std::shared_ptr<write_tracker> tracker, std::shared_ptr<posted_operations> posted,
             bool by_ucx, clock::time_point deadline);

  /// The owner's side: every write that counts has settled.
  void writes_settled();
  /// So have the handle's posted operations.
  void posted_settled();
  /// The tracker's writes before this number are those that it waits for.
  std::uint64_t last_write() const noexcept { return last_write_; }
  /// The last epoch of writes that a flush of the connection waits for.
  std::uint64_t epoch() const noexcept { return epoch_; }
  /// The last epoch of posted operations that a flush of a handle waits for.
  std::uint64_t posted_epoch() const noexcept { return posted_epoch_; }

  void give_up(errc why) noexcept override;
  void connection_failed(std::error_code why) noexcept override;
  std::string describe() const override;
  request_attributes attributes() const override { return {.kind = operation_kind::flush}; }
  std::optional<int> own_ucx_status() const noexcept override { return ucx_status_; }
  bool was_given_up() const noexcept override { return was_given_up_; }
  /// From here on the writes that it waits for are left alone, too.
  void set_blocking() noexcept override;

 protected:
  void recycle() noexcept override;

 private:
  static void on_flushed(void* request, ucs_status_t status, void* self);
  /// UCX has what was started before.
  void staged_ended(ucs_status_t) noexcept override;
  void begin_by_ucx();
  void flushed_by_ucx(std::error_code outcome);
  void finish(std::error_code outcome) noexcept;

  std::shared_ptr<write_tracker> tracker_;
  std::shared_ptr<posted_operations> posted_;  // of the tracker's handle
  std::uint64_t posted_epoch_ = 0;
  bool waits_for_posted_ = false;
  bool waits_for_turn_ = false;
  bool was_given_up_ = false;
  std::string failed_;  // the first of the failures, in words
  std::optional<int> ucx_status_;
  std::uint64_t mark_ = 0;
  std::uint64_t epoch_ = 0;
  std::uint64_t last_write_ = 0;
  void* ucx_request_ = nullptr;
};

}  // namespace ucx::detail
