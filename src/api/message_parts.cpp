#include "ucx/receive_target.hpp"

#include <new>
#include <utility>

#include "ucx/error.hpp"
#include "wire/parts_table.hpp"

namespace ucx {

std::error_code message_parts::find_parts() noexcept {
  parts_.clear();
  try {
    auto found = detail::decode_parts(memory_.bytes());
    if (!found) return errc::protocol_error;
    parts_ = std::move(*found);
  } catch (const std::bad_alloc&) {
    return errc::no_memory;
  }
  return {};
}

}  // namespace ucx
