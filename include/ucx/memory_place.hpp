#pragma once

#include "ucx/export.hpp"
#include "ucx/memory_kind.hpp"

namespace ucx {

/// Which memory an address belongs to, or something is to be allocated in.
struct memory_place {
  memory_kind kind = memory_kind::host;
  int device = -1;  ///< The driver's number of the device; -1: none, or any.

  friend bool operator==(const memory_place&, const memory_place&) = default;
};

/// Returns where the byte at `address` lies: `cuda`, `cuda_managed` or `cuda_pinned` and the
/// device, if the CUDA driver says so; of the host everywhere else, and as long as nobody in the
/// process has initialised CUDA. Where the driver can not tell (a device that failed; a child that
/// was forked once CUDA was initialised), what the processor can read is the host's, and anything
/// else `other`, which is refused wherever it is used. Threads: safe.    Cost: next to nothing
/// where there is no driver; its answer, else.
UCXIO_EXPORT memory_place place_of(const void* address) noexcept;

}  // namespace ucx
