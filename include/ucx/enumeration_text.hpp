#pragma once

#include <concepts>
#include <iosfwd>
#include <string_view>
#include <type_traits>

namespace ucx {

/// Writes the name of an enumerator, as `to_string` returns it. Every enumeration of this library
/// has a `to_string`.
template <class Enumeration, class Traits>
requires std::is_enum_v<Enumeration> && requires(Enumeration value) {
  { to_string(value) } -> std::convertible_to<std::string_view>;
}
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out,
                                             Enumeration value) {
  return out << std::string_view(to_string(value));
}

}  // namespace ucx
