// The version of everything that crosses processes: docs/reference/wire-format.md, "Versions".
#pragma once

#include <cstdint>

namespace ucx::detail {

inline constexpr std::uint8_t protocol_version_number = 1;

}  // namespace ucx::detail
