// Memory of a CUDA device, or managed by CUDA, that peers may reach.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.hpp"
#include "cuda/cuda_share.hpp"
#include "file/held_file.hpp"
#include "region/exposed/device_memory.hpp"
#include "region/exposed/exposed_region.hpp"
#include "region/exposed/plane_memory.hpp"
#include "region/exposed/region_record.hpp"

namespace ucx::detail {

/// UCX never touches the memory: it sees staging buffers, which the driver copies from and to.
/// Peers use messages, and within one host the driver, where it shares the memory. Operations that
/// need the processor (atomics, digests of bytes in flight) fail with `not_supported`.
class device_region final : public exposed_region,
                            public write_sink,
                            public std::enable_shared_from_this<device_region> {
 public:
  /// Exposes `memory`. Errors: feature_disabled (the context was made without feature::am).
  static result<std::shared_ptr<exposed_region>> make(std::shared_ptr<context_core> context,
                                                      std::shared_ptr<device_memory> memory,
                                                      access granted);
  ~device_region() override;

  std::uint64_t size() const noexcept override { return where_.size(); }
  memory_kind kind() const noexcept override { return place_.kind; }
  memory_place memory() const noexcept override { return place_; }
  std::span<std::byte> bytes() const noexcept override { return {}; }
  std::span<std::byte> where() const noexcept override { return where_; }
  std::shared_ptr<file_source> source() const noexcept override { return memory_.get(); }
  remote_descriptor descriptor() const override;
  std::shared_ptr<write_sink> sink() noexcept override { return shared_from_this(); }

  /// Copies the bytes into a staging buffer, and confirms them when they are in the memory.
  void write(endpoint_core& from, const frame& asked, std::span<const std::byte> payload) override;
  /// Some devices see the writes of adapters only behind a flush of the driver's.
  bool notify_later(endpoint_core& from, const frame& asked) override;

 private:
  device_region(std::shared_ptr<context_core> context, std::shared_ptr<device_memory> memory,
                access granted);
  void lend();
  void register_for_adapters();
  /// Waits for the copies that run, and lets no other begin.
  void release() noexcept override;

  class uncopied_bytes;
  class write_copy;
  class notify_flush;

  const memory_place place_;
  const std::span<std::byte> where_;
  held_file<device_memory> memory_;
  // Where processes of this host find it.
  std::unique_ptr<region_record> record_;
  cma_handle loan_;
  cuda_ipc_handle handle_;
  cuda_share share_;                          // what the handle names
  std::unique_ptr<plane_memory> registered_;  // where adapters of other hosts find it
  bool flushes_ = false;                      // before each notification
  bool owned_ = false;
  const std::shared_ptr<uncopied_bytes> uncopied_;
};

}  // namespace ucx::detail
