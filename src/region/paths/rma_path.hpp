// The way of UCX's remote memory access: the transport moves the bytes, and the owner's CPU sleeps.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <system_error>
#include <vector>

#include "base/result.hpp"
#include "region/paths/transfer_path.hpp"

namespace ucx::detail {

/// Uses RDMA hardware that has GET and PUT. Within one host, over a connection that is not watched,
/// it uses UCX's shared memory: mapped here, or read by UCX's CMA. UCX emulates RMA over all other
/// transports, which is not this path: messages are as fast there, and the owner checks them.
/// Declines what is started behind a fence while messages before it are not answered: by message it
/// takes its place in the queue. Declines writes where UCX only reads, by its CMA, and reads into
/// memory that UCX can not register.
class rma_path final : public transfer_path {
 public:
  /// Takes UCX's key to the region. Errors: not_supported, and why RMA is not real here;
  /// feature_disabled; bad_descriptor (UCX refuses the key).
  /// `trusted`: of a foreign region also RMA that UCX emulates, and writes by CMA.
  static result<std::unique_ptr<transfer_path>> open(peer_region& region, bool trusted);
  ~rma_path() override { drop_key(); }

  ucx::transfer_method method() const noexcept override { return transfer_method::rma; }
  outcome read(std::uint64_t offset, std::span<std::byte> into, const io_options& options,
               std::error_code& ec) override;
  outcome read_kept(std::uint64_t offset, std::span<std::byte> into,
                    const std::shared_ptr<const void>& keeper, const io_options& options,
                    std::error_code& ec) override;
  bool leaves_reads_at_once() const noexcept override { return emulated_; }
  outcome write(const std::shared_ptr<write_tracker>& tracker, std::uint64_t offset,
                std::span<const std::byte> from, const io_options& options,
                std::error_code& ec) override;
  bool takes(access wanted) const noexcept override;
  /// UCX is given memory of the host's only.
  outcome move_device(const device_bytes& bytes, std::uint64_t offset, access wanted,
                      const io_options& options, std::error_code& ec) override;

  std::byte* address() const noexcept override { return mapped_; }
  ucp_rkey* key() const noexcept override { return key_; }
  void drop_key() noexcept override;

 private:
  explicit rma_path(peer_region& region) noexcept : transfer_path(region) {}
  result<void> take_key(const std::vector<std::string>& transports, bool trusted);
  result<void> look_at_memory(bool cma, bool trusted);
  bool is_copied_here() const noexcept;
  bool is_unregistered(std::error_code ec) const noexcept;
  void tell_of_unregistered(std::size_t size, std::error_code ec);

  ucp_rkey_h key_ = nullptr;
  std::byte* mapped_ = nullptr;  // the owner's memory, where UCX has mapped it
  bool copied_ = false;          // there, without UCX
  bool emulated_ = false;        // UCX moves bytes by messages
  bool writes_ = true;
  bool told_ = false;  // that a read went by message
};

}  // namespace ucx::detail
