#pragma once

#include <cstdint>
#include <string_view>

#include "ucx/enumeration_text.hpp"
#include "ucx/export.hpp"

namespace ucx {

/// How the bytes of a `remote_region` move (`docs/explanation/architecture.md`).
enum class way : std::uint8_t {
  automatic,  ///< Chosen from what the transports of the connection really are.
  message,    ///< The owner answers by active messages and checks every access.
  rma,        ///< UCX's transport reads and writes the owner's memory: RDMA, or shared memory of
              ///< UCX's on one host; the owner's CPU sleeps. Writes go by message where UCX only
              ///< reads, by its CMA.
  mapped,     ///< The owner's memory is mapped here, and read and written in place.
  cma,        ///< Linux's cross-memory attach: this process reads the owner's memory where it lies,
              ///< on one host, by process_vm_readv(2). Writes go by message.
  cuda_ipc,   ///< CUDA's interprocess communication: the driver copies from and to the owner's
              ///< device memory, on one host.
};

/// Returns the name of the enumerator.
UCXIO_EXPORT std::string_view to_string(way value) noexcept;

}  // namespace ucx
