// Bytes of a message that its receiver may fetch by RMA.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <span>

namespace ucx::detail {

class context_core;

/// Registered with RDMA hardware, and with a key. A peer with the key can read and write the pages
/// of the bytes, so the key lives no longer than it is needed.
class lent_memory {
 public:
  lent_memory() noexcept = default;
  lent_memory(const lent_memory&) = delete;
  lent_memory& operator=(const lent_memory&) = delete;
  ~lent_memory() { end(); }

  /// Registers `bytes`, which are the host's. Returns false where the process may not lock them and
  /// the buffers of a worker, and where UCX can not, or has no key.
  /// REQUIRES: nothing is lent; the context lives until `end()`.
  bool begin(context_core& context, std::span<const std::byte> bytes) noexcept;
  bool lends() const noexcept { return memory_ != nullptr; }
  /// Returns UCX's key. REQUIRES: `lends()`.
  std::span<const std::byte> key() const noexcept {
    return {static_cast<const std::byte*>(key_), key_size_};
  }
  /// The key counts no more: who uses it loses its connection.
  void end() noexcept;

 private:
  context_core* context_ = nullptr;
  std::span<const std::byte> bytes_;
  ucp_mem_h memory_ = nullptr;
  void* key_ = nullptr;  // UCX's own
  std::size_t key_size_ = 0;
};

}  // namespace ucx::detail
