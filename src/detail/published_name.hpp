// One name of a server's catalogue, and what stands behind it.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "detail/published.hpp"
#include "detail/ucp_api.hpp"
#include "ucx/entry.hpp"

namespace ucx::detail {

class exposed_region;
class server_core;

/// Shared by the catalogue and the publication. What never changes may be read from any thread.
class published_name final : public published {
 public:
  published_name(const std::shared_ptr<server_core>& server, entry described,
                 std::shared_ptr<exposed_region> region, std::span<std::byte> bytes);
  ~published_name() override;

  const entry& described() const noexcept override { return described_; }
  /// Returns the region's number and its descriptor's wire form.
  std::uint64_t region() const noexcept { return region_id_; }
  const std::vector<std::byte>& descriptor() const noexcept { return descriptor_; }
  std::span<std::byte> bytes() const noexcept override;
  std::string url() const override;

  bool is_open() const noexcept override { return !closed_.load(std::memory_order_acquire); }
  void close(clock::time_point until = clock::time_point::max()) noexcept override;

 private:
  const std::weak_ptr<server_core> server_;
  const entry described_;
  std::mutex holding_;
  std::shared_ptr<exposed_region> region_;  // until it is closed
  const std::uint64_t region_id_;
  const std::vector<std::byte> descriptor_;
  const std::span<std::byte> bytes_;
  std::atomic<bool> closed_{false};
};

}  // namespace ucx::detail
