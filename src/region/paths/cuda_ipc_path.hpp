// The path to memory of a device that its owner shares with the other processes on the host: the
// CUDA driver copies it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <system_error>

#include "base/result.hpp"
#include "region/paths/cuda_ipc_region.hpp"
#include "region/paths/transfer_path.hpp"

namespace ucx::detail {

/// Whether the driver does it is known when the first bytes are wanted: CUDA may come into use
/// until then, and opening takes long. Each access is an operation of the way of messages, with a
/// mover: what the driver refuses the owner is asked for.
class cuda_ipc_path final : public transfer_path {
 public:
  /// Finds out whether the driver may do it. Where `at_once`, this process has to use CUDA already.
  /// Errors: not_supported, and why it may not; feature_disabled (there are no messages).
  static result<std::unique_ptr<transfer_path>> open(peer_region& region, bool at_once);

  ucx::transfer_method method() const noexcept override { return method_; }
  outcome read(std::uint64_t offset, std::span<std::byte> into, const io_options& options,
               std::error_code& ec) override;
  outcome write(const std::shared_ptr<write_tracker>& tracker, std::uint64_t offset,
                std::span<const std::byte> from, const io_options& options,
                std::error_code& ec) override;
  bool takes(access) const noexcept override { return memory_ != nullptr; }

  std::unique_ptr<direct_move> mover(const device_bytes& bytes, access wanted) override;
  bool is_lent() noexcept override { return memory_ && memory_->is_lent(); }
  bool was_moved(std::uint64_t bytes, std::error_code outcome) override;

  std::string complaint() const override { return complaint_; }
  void close() noexcept override { memory_.reset(); }
  void drop_key() noexcept override { memory_.reset(); }

 private:
  cuda_ipc_path(peer_region& region, std::unique_ptr<cuda_ipc_region> memory) noexcept;
  /// Returns whether this process may write the memory without its owner.
  bool may_write() const noexcept;
  void goes_by_message(std::string why) noexcept;
  void was_refused();

  std::unique_ptr<cuda_ipc_region> memory_;  // nothing, once the owner lends it no more
  std::atomic<ucx::transfer_method> method_ =
      transfer_method::cuda_ipc;  // is read without the lock
  std::string complaint_;
};

}  // namespace ucx::detail
