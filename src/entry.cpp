#include "ucx/entry.hpp"

namespace ucx {

std::string_view to_string(entry_type type) noexcept {
  return type == entry_type::file ? "file" : "memory";
}

}  // namespace ucx
