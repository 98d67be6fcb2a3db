#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>

#include "ucx/error.hpp"
#include "ucx/export.hpp"
#include "ucx/to_string.hpp"

namespace ucx {

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
