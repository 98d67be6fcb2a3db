// Local memory that peers may reach, and its registration with UCX.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <system_error>

#include "detail/context_core.hpp"
#include "ucx/access.hpp"
#include "ucx/memory_kind.hpp"
#include "ucx/remote_descriptor.hpp"

namespace ucx::detail {

class region_core {
 public:
  /// Exposes `bytes`; with a null address allocates `size` bytes instead.
  static std::shared_ptr<region_core> make(std::shared_ptr<context_core> context, std::byte* bytes,
                                           std::size_t size, access granted, std::string& what,
                                           std::error_code& ec);
  ~region_core();
  region_core(const region_core&) = delete;
  region_core& operator=(const region_core&) = delete;

  std::uint64_t id() const noexcept { return id_; }
  std::uint64_t generation() const noexcept { return generation_; }
  std::span<std::byte> bytes() const noexcept { return {data_, size_}; }
  access granted() const noexcept { return granted_; }
  memory_kind kind() const noexcept { return kind_; }
  remote_descriptor descriptor() const;

  /// Checks an access of a peer's against size and rights; offsets can not overflow.
  std::error_code check(std::uint64_t offset, std::uint64_t length, access wanted) const noexcept;

  void close() noexcept;

  void begin_access() noexcept { accesses_.fetch_add(1, std::memory_order_acquire); }
  void end_access() noexcept { accesses_.fetch_sub(1, std::memory_order_release); }
  bool idle() const noexcept { return accesses_.load(std::memory_order_acquire) == 0; }

 private:
  region_core(std::shared_ptr<context_core> context, access granted);
  void map(std::byte* bytes, std::size_t size, std::string& what, std::error_code& ec);
  void allocate_privately(std::size_t size);
  void pack_key(std::error_code& ec);

  std::shared_ptr<context_core> context_;
  std::uint64_t id_;
  std::uint64_t generation_ = 1;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  access granted_;
  memory_kind kind_ = memory_kind::host;
  bool shareable_ = false;
  bool open_ = false;
  std::unique_ptr<std::byte[]> owned_;
  ucp_mem_h memory_ = nullptr;
  std::vector<std::byte> key_;
  std::atomic<std::uint32_t> accesses_{0};
};

/// Returns sixteen bytes that are the same for all processes of this host (and boot), so that
/// peers can tell whether they share memory with an owner.
std::array<std::byte, 16> host_identity() noexcept;

}  // namespace ucx::detail
