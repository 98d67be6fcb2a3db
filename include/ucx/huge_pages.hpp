#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>

#include "ucx/enumeration_text.hpp"
#include "ucx/export.hpp"

namespace ucx {

/// What the system is asked for: pages of 2 MiB, on most machines, in place of 4 KiB. Bytes that
/// lie in them are moved faster between processes of one host.
enum class huge_pages {
  none,      ///< Small ones from now on; what is in huge ones stays there.
  advise,    ///< Huge ones where the system has some when the memory is touched first, or later.
  collapse,  ///< Huge ones now: what is there already is copied into them. Linux 6.1.
};

/// Returns the name of the enumerator.
UCXIO_EXPORT std::string_view to_string(huge_pages value) noexcept;

/// Asks the system to have the caller's memory in such pages; before it is published, or behind
/// that. Only what lies in whole huge pages can be: align it to 2 MiB. Memory that this library
/// allocates, from 2 MiB on, is aligned, and advised to be.
/// Errors: not_supported (the system has none for such memory, or does not know of the wish), busy
/// (collapse: it has no more huge pages now, and some of the memory may be in them),
/// invalid_argument (no memory of this process).
/// Cost: next to nothing; collapse copies what is there, some tenths of a millisecond a MiB.
/// Threads: safe, also while the memory is used.
UCXIO_EXPORT void use_huge_pages(std::span<std::byte> bytes, huge_pages wanted);
UCXIO_EXPORT void use_huge_pages(std::span<std::byte> bytes, huge_pages wanted,
                                 std::error_code& ec);

/// Returns how many of the bytes are in huge pages, as the system tells of the whole mappings that
/// they are in; nothing where it does not.
UCXIO_EXPORT std::optional<std::uint64_t> bytes_in_huge_pages(std::span<const std::byte> bytes);

}  // namespace ucx
