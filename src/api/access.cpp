#include "ucx/access.hpp"

namespace ucx {

const char* to_string(access granted) noexcept {
  switch (granted) {
    case access::read:
      return "read";
    case access::write:
      return "write";
    case access::read_write:
      return "read_write";
  }
  return "none";
}

}  // namespace ucx
