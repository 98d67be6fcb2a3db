#pragma once

#include <cstdint>
#include <string_view>

#include "ucx/export.hpp"
#include "ucx/to_string.hpp"

namespace ucx {

/// The ways in which the bytes of a `remote_region` move (`docs/architecture.md`).
enum class transfer_method : std::uint8_t {
  automatic,  ///< Chosen by the abilities of the connection's transports.
  message,    ///< The owner answers by active messages and checks every access.
  /// UCX's transport reads and writes the owner's memory, by RDMA or by UCX's shared memory on one
  /// host. The owner's CPU sleeps. Writes go by message where UCX only reads, by its CMA.
  rma,
  mapped,  ///< The owner's memory is mapped here, and read and written in place.
  /// Linux's cross-memory attach: on one host, this process reads the owner's memory in place by
  /// process_vm_readv(2). Writes go by message.
  cma,
  /// CUDA's interprocess communication: on one host, the driver copies from and to the owner's
  /// device memory.
  cuda_ipc,
};

template <>
UCXIO_EXPORT std::string_view detail::enum_name(transfer_method value) noexcept;

#if UCXIO_OLD_NAMES
using way [[deprecated("transfer_method")]] = transfer_method;
#endif

}  // namespace ucx
