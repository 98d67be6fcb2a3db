// Memory of devices, as the simulated UCX and its adapters see it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace ucx::test {

class fake_process;

/// Contexts with the transport `cuda_copy` know it. RMA with it is the hardware's where the link
/// has such and adapters reach the memory. Else UCX emulates it, or ends it with `UCS_ERR_CANCELED`
/// on a context of `PROTO_EMULATION_ENABLE=n`. Addresses are the program's.
class fake_devices {
 public:
  virtual ~fake_devices() = default;
  /// Returns whether `address` is a device's.
  virtual bool has(const void* address) const = 0;
  /// Returns whether adapters reach these bytes.
  virtual bool is_in_reach(const void* address, std::size_t size) const = 0;
  /// Returns whether only writes to it are the hardware's, as by `cuda_ipc`.
  virtual bool emulates_gets() const { return false; }
  /// By an adapter, or by a copy of UCX's own. Returns whether it was possible.
  virtual bool read(const void* from, std::span<std::byte> into, bool by_adapter) = 0;
  virtual bool write(void* into, std::span<const std::byte> from, bool by_adapter) = 0;
};

/// Lets the whole network of `member` have them: contexts that are made from now on.
void install(fake_process& member, std::shared_ptr<fake_devices> devices);

}  // namespace ucx::test
