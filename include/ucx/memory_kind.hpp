#pragma once

#include <cstdint>
#include <string_view>

#include "ucx/enumeration_text.hpp"
#include "ucx/export.hpp"

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

/// Returns the name of `kind`: "host", "cuda", ...
UCXIO_EXPORT std::string_view to_string(memory_kind kind) noexcept;

}  // namespace ucx
