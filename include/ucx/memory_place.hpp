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
/// device, if the CUDA driver says so. Without a library of the driver's, as long as nobody in the
/// process has initialised CUDA, and for a null pointer, it is the host's, and nobody is asked.
/// Otherwise the system is asked whether the processor can read there: what it can is the host's,
/// and anything else `other`, which is refused wherever it is used. That is so
/// - where the driver does not know the address, or not any more: memory of its that was freed is
///   `other`, or the host's if something of the host's has the address by now; what went back to a
///   pool of the driver's or a framework's is still what it was;
/// - where the driver can not tell: a device that failed; a child of a process that had loaded the
///   driver before it forked;
/// - where there is a library of the driver's name that lacks functions the library needs: memory
///   of a device is `other`, and what the processor can read is the host's, managed and pinned
///   memory too.
/// Threads: safe.    Cost: next to nothing where there is no such library; the driver's answer,
/// else, and one short system call where the system is asked.
UCXIO_EXPORT memory_place place_of(const void* address) noexcept;

}  // namespace ucx
