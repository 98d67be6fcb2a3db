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
  detail::landed_part* const named = named_part();
  if (named == nullptr || !named->owner) return {};
  named->bytes = {};  // which `named_part` knows again
  const std::shared_ptr<buffer> owner = std::exchange(named->owner, nullptr);
  return std::move(*owner);
}

}  // namespace ucx
