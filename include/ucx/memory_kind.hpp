#pragma once

#include <cstdint>
#include <string_view>

#include "ucx/enumeration_text.hpp"
#include "ucx/export.hpp"

namespace ucx {

/// Where memory lives. Values travel in descriptors, but for `cuda_pinned`: to peers that is memory
/// of the host.
enum class memory_kind : std::uint8_t {
  host = 0,
  cuda = 1,
  cuda_managed = 2,
  rocm = 3,
  cuda_pinned = 4,  ///< Of the host, and known to the CUDA driver.
  other = 255
};

/// Returns the name of `kind`: "host", "cuda", ...
UCXIO_EXPORT std::string_view to_string(memory_kind kind) noexcept;

}  // namespace ucx
