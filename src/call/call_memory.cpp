#include "call/call_memory.hpp"

#include <memory>
#include <utility>

#include "ucx/buffer.hpp"

namespace ucx {

call_writer& call_writer::memory(buffer bytes) {
  const auto kept = std::make_shared<buffer>(std::move(bytes));
  return add_part({.bytes = std::as_const(*kept).bytes(), .owner = kept});
}

buffer call_reader::take_memory() {
  const detail::landed_part* const named = named_part();
  return named != nullptr && named->owner ? std::move(*named->owner) : buffer();
}

}  // namespace ucx
