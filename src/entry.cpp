#include "ucx/entry.hpp"

namespace ucx {

std::string_view to_string(entry_type type) noexcept {
  switch (type) {
    case entry_type::memory:
      return "memory";
    case entry_type::file:
      return "file";
    case entry_type::directory:
      return "directory";
  }
  return "unknown";
}

}  // namespace ucx
