// Tensors as arguments and results of calls: docs/reference/calls.md, "Tensors".
#pragma once

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "ucx/buffer.hpp"
#include "ucx/call_memory.hpp"
#include "ucx/call_reader.hpp"
#include "ucx/call_types.hpp"
#include "ucx/call_writer.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_place.hpp"
#include "ucx/to_string.hpp"
#include "ucx/version.hpp"

namespace ucx {

/// The type of the elements of a tensor. The values travel in calls.
enum class element_type : std::uint8_t {
  boolean = 0,  ///< A byte.
  i8 = 1,
  i16 = 2,
  i32 = 3,
  i64 = 4,
  u8 = 5,
  u16 = 6,
  u32 = 7,
  u64 = 8,
  f16 = 9,
  bf16 = 10,  ///< The upper half of an `f32`.
  f32 = 11,
  f64 = 12,
  c64 = 13,   ///< Two `f32`.
  c128 = 14,  ///< Two `f64`.
};

template <>
UCXIO_EXPORT std::string_view detail::enum_name(element_type value) noexcept;

/// Returns how many bytes an element has.
UCXIO_EXPORT std::size_t size_of(element_type type) noexcept;

namespace detail {

/// Returns the element type of a C++ type.
template <class T>
consteval element_type element_of() {
  if constexpr (std::is_same_v<T, bool>) return element_type::boolean;
  if constexpr (std::is_same_v<T, float>) return element_type::f32;
  if constexpr (std::is_same_v<T, double>) return element_type::f64;
  if constexpr (std::is_same_v<T, std::complex<float>>) return element_type::c64;
  if constexpr (std::is_same_v<T, std::complex<double>>) return element_type::c128;
  if constexpr (std::signed_integral<T>) {
    return sizeof(T) == 1   ? element_type::i8
           : sizeof(T) == 2 ? element_type::i16
           : sizeof(T) == 4 ? element_type::i32
                            : element_type::i64;
  }
  return sizeof(T) == 1   ? element_type::u8
         : sizeof(T) == 2 ? element_type::u16
         : sizeof(T) == 4 ? element_type::u32
                          : element_type::u64;
}
template <class T>
concept tensor_element =
    (std::integral<T> && sizeof(T) <= 8) || std::is_same_v<T, float> || std::is_same_v<T, double> ||
    std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

}  // namespace detail

/// The elements of a tensor, and how they lie in memory.
struct UCXIO_EXPORT tensor_layout {
  /// Dimensions at most.
  static constexpr std::size_t max_dimensions = 32;

  element_type type = element_type::f64;
  std::vector<std::uint64_t> shape = {};
  /// How many elements further the next one of each dimension lies. Empty: the last dimension lies
  /// without gaps, and so do those before it.
  std::vector<std::uint64_t> strides = {};

  /// Returns how many bytes there are from the first element to the end of the last one. Nothing
  /// where no memory has so many, and where the layout has too many dimensions, or other strides.
  /// Nothing also where the product of the lengths that are not 0, in bytes, has more than 63 bits.
  std::optional<std::uint64_t> extent() const noexcept;
};

/// A tensor in memory of the host or a device. As an argument its bytes travel beside the call, and
/// are not copied. A function gets what landed at its side.
///
///     peer.call<double>("sum", ucx::tensor_view::of(std::span<const double>(numbers), {3, 4}));
///
/// Its wire type is `tensor`.
/// Lifetime: the bytes, at the caller until the call is done, at the callee until the function has
/// returned.
struct UCXIO_EXPORT tensor_view : tensor_layout {
  std::span<const std::byte> bytes = {};
  /// Where the bytes lie on this side. The caller may leave it as it is.
  memory_place place = {};

  /// Makes one of elements that lie without gaps.
  template <detail::tensor_element T>
  static tensor_view of(std::span<const T> elements, std::vector<std::uint64_t> shape) {
    tensor_view made;
    made.type = detail::element_of<T>();
    made.shape = std::move(shape);
    made.bytes = std::as_bytes(elements);
    return made;
  }
  /// Returns the elements, of a tensor of the host without gaps.
  /// Errors: invalid_argument: it is another one.
  template <detail::tensor_element T>
  std::span<const T> elements(std::error_code& ec = throws) const {
    const std::size_t count = count_of(detail::element_of<T>(), ec);
    return {reinterpret_cast<const T*>(bytes.data()), count};
  }

 private:
  std::size_t count_of(element_type wanted, std::error_code& ec) const;
};

/// A tensor that owns its memory: a result, or the argument of a coroutine.
struct UCXIO_EXPORT tensor : tensor_layout {
  buffer memory = {};

  /// Refers to it.
  /// Lifetime: this object.
  tensor_view view() const;
};

namespace detail {

/// Errors: invalid_argument: there are not enough bytes for the layout, or it is none.
UCXIO_EXPORT void write_layout(call_writer& to, const tensor_layout& layout, std::size_t size);
UCXIO_EXPORT tensor_layout read_layout(call_reader& from);
/// The reader fails where there are not enough bytes.
UCXIO_EXPORT void expect_extent(call_reader& from, const tensor_layout& layout, std::size_t size);
UCXIO_EXPORT tensor_view read_tensor_view(call_reader& from);

template <>
struct call_type<tensor_view> {
  static constexpr std::size_t depth = 2;
  static constexpr bool borrows = true;
  static void describe(std::string& text) { text += "tensor"; }
  static void write(call_writer& to, const tensor_view& value) {
    write_layout(to, value, value.bytes.size());
    to.memory(value.bytes);
  }
  static tensor_view read(call_reader& from) { return read_tensor_view(from); }
};

template <>
struct call_type<tensor> {
  static constexpr std::size_t depth = 2;
  static constexpr bool borrows = false;
  static constexpr bool has_memory = true;
  static void describe(std::string& text) { text += "tensor"; }
  static void write(call_writer& to, const tensor& value) {
    write_layout(to, value, value.memory.size());
    to.memory(value.memory.bytes());
  }
  /// A result owns its memory.
  static void give(call_writer& to, tensor&& value) {
    write_layout(to, value, value.memory.size());
    to.memory(std::move(value.memory));
  }
  static tensor read(call_reader& from) {
    tensor made{read_layout(from), from.take_memory()};
    expect_extent(from, made, made.memory.size());
    return made;
  }
};

}  // namespace detail

}  // namespace ucx
