// Words about an end, which is told all the same where there is no memory for them.
#pragma once

#include <new>
#include <string>

namespace ucx::detail {

/// Returns the text that `make` makes; nothing where there is no memory for it.
template <class Make>
std::string if_there_is_memory(Make make) noexcept {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    return {};
  }
}

inline std::string if_there_is_memory(const char* text) noexcept {
  return if_there_is_memory([text]() -> std::string { return text; });
}

}  // namespace ucx::detail
