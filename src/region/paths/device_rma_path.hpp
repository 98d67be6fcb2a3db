// The path to memory of a device on another host: its adapter reads and writes it (GPUDirect RDMA).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <system_error>

#include "base/result.hpp"
#include "region/paths/plane_move.hpp"
#include "region/paths/transfer_path.hpp"

namespace ucx::detail {

/// Goes by the planes of both sides (`device_plane`), beside the connection. At the opening one
/// byte is read into memory of the host's. Until that has come, accesses go by message, and for
/// good where UCX refuses it. Each access is an operation of the way of messages, with a mover:
/// what UCX refuses the owner is asked for. The first access of each further pair of kinds is its
/// own probe: UCX refuses before a byte has moved.
class device_rma_path final : public transfer_path {
 public:
  /// Waits for nothing. Errors: not_supported, and why it does not lead there; feature_disabled.
  static result<std::unique_ptr<transfer_path>> open(peer_region& region);
  static constexpr std::chrono::seconds longest_probe{5};
  ~device_rma_path() override { drop_key(); }

  ucx::transfer_method method() const noexcept override {
    return way_.state->is_open() ? transfer_method::rma : transfer_method::message;
  }
  outcome read(std::uint64_t offset, std::span<std::byte> into, const io_options& options,
               std::error_code& ec) override;
  outcome write(const std::shared_ptr<write_tracker>& tracker, std::uint64_t offset,
                std::span<const std::byte> from, const io_options& options,
                std::error_code& ec) override;
  bool takes(access wanted) const noexcept override { return may_move(wanted, false); }

  std::unique_ptr<direct_move> mover(const device_bytes& bytes, access wanted) override;
  bool is_lent() noexcept override { return way_.key != nullptr; }
  bool was_moved(std::uint64_t bytes, std::error_code outcome) override;

  bool is_by_adapters() const noexcept override { return true; }
  std::shared_ptr<plane_transfer> first_transfer() const noexcept override;
  std::string complaint() const override;
  void close() noexcept override { drop_key(); }
  void drop_key() noexcept override;

 private:
  class probe;

  device_rma_path(peer_region& region, plane_move::way there) noexcept
      : transfer_path(region), way_(std::move(there)) {}
  std::shared_ptr<probe> start_probe();
  bool may_move(access wanted, bool with_device) const noexcept;

  plane_move::way way_;  // without a key once it was closed
  std::shared_ptr<probe> probe_;
};

}  // namespace ucx::detail
