// The way of Linux's cross-memory attach: this process reads the memory where its owner has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <system_error>

#include "base/result.hpp"
#include "region/paths/cma_region.hpp"
#include "region/paths/transfer_path.hpp"

namespace ucx::detail {

/// For reads, within the call, by process_vm_readv(2). Writes are declined: a writer that was
/// stopped could not be kept from writing when it goes on.
class cma_path final : public transfer_path {
 public:
  /// Finds out whether the system lets this process read there. Errors: not_supported, and why it
  /// does not; feature_disabled (there are no messages for what is declined).
  static result<std::unique_ptr<transfer_path>> open(peer_region& region);

  ucx::transfer_method method() const noexcept override { return transfer_method::cma; }
  outcome read(std::uint64_t offset, std::span<std::byte> into, const io_options& options,
               std::error_code& ec) override;
  outcome write(const std::shared_ptr<write_tracker>& tracker, std::uint64_t offset,
                std::span<const std::byte> from, const io_options& options,
                std::error_code& ec) override;
  bool takes(access wanted) const noexcept override;
  std::optional<std::uint64_t> bytes_in_huge_pages() const override;

 private:
  cma_path(peer_region& region, std::unique_ptr<cma_region> memory) noexcept;

  const std::unique_ptr<cma_region> memory_;
};

}  // namespace ucx::detail
