#pragma once

#include <cstdint>
#include <string_view>

#include "ucx/export.hpp"

namespace ucx {

/// How the bytes of a `remote_region` move (`docs/architecture.md`).
enum class way : std::uint8_t {
  automatic,  ///< Chosen from what the transports of the connection really are.
  message,    ///< The owner answers by active messages and checks every access.
  rma,        ///< The transport, or the CUDA driver, reads and writes the owner's memory, or this
              ///< process reads it where it lies, on one host; the owner's CPU sleeps.
  mapped,     ///< The owner's memory is mapped here, and read and written in place.
};

/// Returns "automatic", "message", "rma" or "mapped".
UCXIO_EXPORT std::string_view to_string(way value) noexcept;

}  // namespace ucx
