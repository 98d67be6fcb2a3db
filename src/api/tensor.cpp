#include "ucx/tensor.hpp"

#include <limits>
#include <string>

#include "base/result.hpp"
#include "call/call_memory.hpp"
#include "ucx/error.hpp"

namespace ucx {
namespace {

/// The place of each dimension's next element where there are no gaps is found from the last on.
class dense_strides {
 public:
  /// Returns how far the next element of a dimension of this length lies.
  std::optional<std::uint64_t> next(std::uint64_t length) noexcept {
    const std::uint64_t stride = stride_;
    if (length > 0 && stride_ > most / length) return std::nullopt;
    stride_ *= length;
    return stride;
  }

 private:
  static constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  std::uint64_t stride_ = 1;
};

/// Whether the lengths have a product, in elements and in bytes, whatever the strides are. Lengths
/// of 0 are left out: who multiplies some of the lengths only has a number, too.
bool can_be_multiplied(const tensor_layout& layout) noexcept {
  std::uint64_t left = std::numeric_limits<std::int64_t>::max() / size_of(layout.type);
  for (const std::uint64_t length : layout.shape) {
    if (length > 0) left /= length;
  }
  return left > 0;
}

std::vector<std::uint64_t> read_numbers(call_reader& from) {
  std::vector<std::uint64_t> made;
  const std::size_t count = from.list();
  if (count > tensor_layout::max_dimensions) from.fail("a tensor has more than 32 dimensions");
  if (!from.ok()) return made;
  made.reserve(count);
  while (made.size() < count) made.push_back(from.unsigned_integer());
  return made;
}

}  // namespace

std::size_t size_of(element_type type) noexcept {
  switch (type) {
    case element_type::boolean:
    case element_type::i8:
    case element_type::u8:
      return 1;
    case element_type::i16:
    case element_type::u16:
    case element_type::f16:
    case element_type::bf16:
      return 2;
    case element_type::i32:
    case element_type::u32:
    case element_type::f32:
      return 4;
    case element_type::i64:
    case element_type::u64:
    case element_type::f64:
    case element_type::c64:
      return 8;
    case element_type::c128:
      break;
  }
  return 16;
}

std::optional<std::uint64_t> tensor_layout::extent() const noexcept {
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  if (shape.size() > max_dimensions || !can_be_multiplied(*this)) return std::nullopt;
  if (!strides.empty() && strides.size() != shape.size()) return std::nullopt;
  std::uint64_t last = 0;  // the place of the last element
  bool is_empty = false;
  dense_strides dense;
  for (std::size_t left = shape.size(); left-- > 0;) {
    const std::uint64_t length = shape[left];
    const auto stride = strides.empty() ? dense.next(length) : strides[left];
    if (!stride) return std::nullopt;
    if (length == 0) is_empty = true;
    if (length < 2) continue;
    if (*stride > (most - last) / (length - 1)) return std::nullopt;
    last += *stride * (length - 1);
  }
  if (is_empty) return 0;
  const std::uint64_t size = size_of(type);
  if (last >= most / size) return std::nullopt;
  return (last + 1) * size;
}

std::size_t tensor_view::count_of(element_type wanted, std::error_code& ec) const {
  const std::optional<std::uint64_t> needed = extent();
  const bool is_of_host = place.kind == memory_kind::host || place.kind == memory_kind::cuda_pinned;
  const bool is_so = type == wanted && strides.empty() && needed && *needed <= bytes.size();
  const auto outcome =
      is_so && is_of_host ? std::error_code() : make_error_code(errc::invalid_argument);
  detail::end_with(outcome, ec, [&] {
    return "reading elements of " + std::string(to_string(wanted)) +
           " of a tensor that has others, has gaps, or is not in memory of the host";
  });
  return outcome ? 0 : static_cast<std::size_t>(*needed / size_of(type));
}

tensor_view tensor::view() const {
  tensor_view made{*this, memory.bytes()};
  made.place = place_of(memory.data());
  return made;
}

namespace detail {

void write_layout(call_writer& to, const tensor_layout& layout, std::size_t size) {
  const auto needed = layout.extent();
  if (!needed || *needed > size) {
    return call_memory_access::fail(to, "a tensor has more elements than memory");
  }
  to.list(4).unsigned_integer(static_cast<std::uint64_t>(layout.type));
  for (const auto* const numbers : {&layout.shape, &layout.strides}) {
    to.list(numbers->size());
    for (const std::uint64_t each : *numbers) to.unsigned_integer(each);
  }
}

tensor_layout read_layout(call_reader& from) {
  tensor_layout made;
  expect_list(from, 4);
  const std::uint64_t type = from.unsigned_integer();
  if (type > static_cast<std::uint64_t>(element_type::c128)) {
    from.fail("a tensor has elements of a later version");
  } else {
    made.type = static_cast<element_type>(type);
  }
  made.shape = read_numbers(from);
  made.strides = read_numbers(from);
  return made;
}

void expect_extent(call_reader& from, const tensor_layout& layout, std::size_t size) {
  const auto needed = layout.extent();
  if (!needed || *needed > size) from.fail("a tensor has more elements than memory");
}

tensor_view read_tensor_view(call_reader& from) {
  tensor_view made{read_layout(from), from.memory()};
  expect_extent(from, made, made.bytes.size());
  if (from.ok()) made.place = place_of(made.bytes.data());
  return made;
}

}  // namespace detail

}  // namespace ucx
