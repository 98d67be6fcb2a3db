// The memory that bytes lie in: its kind, its device, its pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>

#include "ucx/error.hpp"
#include "ucx/to_string.hpp"
#include "ucx/version.hpp"

namespace ucx {

/// The kind of memory. The values travel in descriptors. `cuda_pinned` does not: to peers it is
/// memory of the host.
enum class memory_kind : std::uint8_t {
  host = 0,
  cuda = 1,
  cuda_managed = 2,
  rocm = 3,
  cuda_pinned = 4,  ///< Memory of the host that the CUDA driver knows.
  other = 255
};

template <>
UCXIO_EXPORT std::string_view detail::enum_name(memory_kind value) noexcept;

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

/// The size of pages that the system is asked for. Huge pages have 2 MiB on most machines, small
/// ones 4 KiB. Bytes in huge pages move faster between processes of one host.
enum class huge_pages {
  none,      ///< Small pages from now on. Bytes in huge pages stay there.
  advise,    ///< Huge pages, if the system has some at the first touch of the memory, or later.
  collapse,  ///< Huge pages now: the bytes are copied into them. Linux 6.1.
};

template <>
UCXIO_EXPORT std::string_view detail::enum_name(huge_pages value) noexcept;

/// Asks the system for such pages for the caller's memory, before or after it is published. Only
/// whole huge pages count: align the memory to 2 MiB. Memory of 2 MiB and more that this library
/// allocates is aligned, and asks with `advise`.
/// Errors: not_supported (the system has none for such memory, or does not know the request), busy
/// (collapse: it has no more huge pages now, and some of the memory may be in them),
/// invalid_argument (no memory of this process).
/// Cost: next to nothing. `collapse` copies the bytes: some tenths of a millisecond for each MiB.
/// Threads: safe, also while the memory is used.
UCXIO_EXPORT void use_huge_pages(std::span<std::byte> bytes, huge_pages wanted,
                                 std::error_code& ec = throws);

/// Returns how many of the bytes are in huge pages, as the system counts them for the whole
/// mappings. Returns nothing where the system does not tell.
UCXIO_EXPORT std::optional<std::uint64_t> bytes_in_huge_pages(std::span<const std::byte> bytes);

}  // namespace ucx
