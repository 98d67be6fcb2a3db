// The way of memory that is mapped into this process: it is copied, within the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <system_error>

#include "base/result.hpp"
#include "region/paths/shared_mapping.hpp"
#include "region/paths/transfer_path.hpp"

namespace ucx::detail {

/// Declines what stands behind a fence: by message it takes its place in the queue.
class mapped_path final : public transfer_path {
 public:
  /// Maps the owner's memory: `file`, if the owner has passed one. Errors: not_supported, and why
  /// it can not be mapped.
  static result<std::unique_ptr<transfer_path>> open(peer_region& region, owned_descriptor file);

  ucx::transfer_method method() const noexcept override { return transfer_method::mapped; }
  outcome read(std::uint64_t offset, std::span<std::byte> into, const io_options& options,
               std::error_code& ec) override;
  outcome write(const std::shared_ptr<write_tracker>& tracker, std::uint64_t offset,
                std::span<const std::byte> from, const io_options& options,
                std::error_code& ec) override;
  bool takes(access wanted) const noexcept override;

  // A device's bytes: by a mover; within the call where no message could take over from one.
  outcome move_device(const device_bytes& bytes, std::uint64_t offset, access wanted,
                      const io_options& options, std::error_code& ec) override;
  std::unique_ptr<direct_move> mover(const device_bytes& bytes, access wanted) override;
  bool is_lent() noexcept override { return !is_withdrawn(); }
  bool was_moved(std::uint64_t bytes, std::error_code outcome) override;

  std::byte* address() const noexcept override { return mapping_->data(); }
  bool is_withdrawn() const noexcept override { return mapping_->withdrawn(); }
  std::optional<std::uint64_t> bytes_in_huge_pages() const override;

 private:
  mapped_path(peer_region& region, std::shared_ptr<shared_mapping> mapping) noexcept;

  const std::shared_ptr<shared_mapping> mapping_;  // with copies of a driver's, maybe
};

}  // namespace ucx::detail
