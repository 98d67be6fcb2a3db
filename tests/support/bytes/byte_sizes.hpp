// Sizes that tests speak in.
#pragma once

#include <cstddef>

namespace ucx::test {

inline constexpr std::size_t kib = std::size_t{1} << 10U;
inline constexpr std::size_t mib = std::size_t{1} << 20U;
inline constexpr std::size_t gib = std::size_t{1} << 30U;

}  // namespace ucx::test
