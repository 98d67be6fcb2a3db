// What tests fill memory with that must stay as it was.
#pragma once

#include <cstddef>

namespace ucx::test {

inline constexpr std::byte untouched{0xa5};

}  // namespace ucx::test
