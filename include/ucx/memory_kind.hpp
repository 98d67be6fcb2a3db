#pragma once

#include <cstdint>
#include <string_view>

#include "ucx/export.hpp"
#include "ucx/to_string.hpp"

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

}  // namespace ucx
