#pragma once

#include "ucx/export.hpp"
#include "ucx/memory_kind.hpp"

namespace ucx {

/// The memory that an address belongs to, or that something is to be allocated in.
struct memory_place {
  memory_kind kind = memory_kind::host;
  int device = -1;  ///< The driver's number of the device; -1: none, or any.

  friend bool operator==(const memory_place&, const memory_place&) = default;
};

#if UCXIO_OLD_NAMES
namespace detail {
/// A place that is written as {kind, device}: where one may be left out, it has its name before it.
struct braced_place {
  struct given_kind {
    given_kind(memory_kind kind) noexcept : value(kind) {}  // NOLINT(google-explicit-constructor)
    memory_kind value;
  };
  operator memory_place() const noexcept {  // NOLINT(google-explicit-constructor)
    return {kind.value, device};
  }
  given_kind kind;
  int device = -1;
};
}  // namespace detail
#endif

/// Returns where the byte at `address` lies: `cuda`, `cuda_managed` or `cuda_pinned` and the
/// device, if the CUDA driver says so. Without a library of the driver, before CUDA is initialised
/// in the process, and for a null pointer, it is `host`. Where the driver gives no answer, the
/// system is asked whether the processor can read there. Memory that it can read is `host`. Other
/// memory is `other`, which every call refuses.
///
/// The driver gives no answer in three cases. It does not know the address, or not any more: freed
/// memory is `other`, or `host` if the host uses the address by now. It can not tell: the device
/// failed, or this is a child of a process that had loaded the driver before it forked. Its library
/// lacks functions that are needed: memory of a device is then `other`, and managed and pinned
/// memory is `host`. Memory that went back to a pool of the driver or of a framework keeps its
/// place.
/// Threads: safe.
/// Cost: next to nothing without a library of the driver. Else the driver's answer, and one short
/// system call where the system is asked.
UCXIO_EXPORT memory_place place_of(const void* address) noexcept;

}  // namespace ucx
