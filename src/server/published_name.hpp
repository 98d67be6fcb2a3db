// One name of a server's catalogue, and what stands behind it.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "base/clock.hpp"
#include "store/published.hpp"
#include "ucx/entry.hpp"
#include "ucx/remote_descriptor.hpp"

namespace ucx::detail {

class exposed_region;
class server_core;

/// Shared by the catalogue and the publication. Members that never change may be read from any
/// thread.
class published_name final : public published {
 public:
  published_name(const std::shared_ptr<server_core>& server, entry described,
                 std::shared_ptr<exposed_region> region, std::span<std::byte> bytes);
  ~published_name() override;

  const entry& described() const noexcept override { return described_; }
  /// Returns the region's number.
  std::uint64_t region() const noexcept { return region_id_; }
  /// Returns the region, until it is closed.
  std::shared_ptr<exposed_region> exposed() const;

  /// The present state: that of memory never changes.
  struct state {
    entry described;
    remote_descriptor descriptor;  // all of it: a client is told what it may know
    std::uint64_t identity = 0;    // as file_identity()
  };
  /// Reads only what the kernel has in memory.
  state look() const;
  entry described_now() const;

  std::span<std::byte> bytes() const noexcept override;
  std::string url() const override;

  bool is_open() const noexcept override { return !closed_.load(std::memory_order_acquire); }
  void close(clock::time_point until = clock::time_point::max()) noexcept override;

 private:
  const std::weak_ptr<server_core> server_;
  const entry described_;
  mutable std::mutex holding_;
  std::shared_ptr<exposed_region> region_;  // until it is closed
  const std::uint64_t region_id_;
  const remote_descriptor descriptor_;  // as it was when it was published
  const std::span<std::byte> bytes_;
  std::atomic<bool> closed_{false};
};

}  // namespace ucx::detail
