#pragma once

#include <concepts>
#include <iosfwd>
#include <string_view>

namespace ucx {

namespace detail {
/// Returns the name of an enumerator. Each enumeration of this library has a specialisation, beside
/// itself; other types have none.
template <class Enumeration>
std::string_view enum_name(Enumeration value) noexcept = delete;

template <class Enumeration>
concept named_enumeration = requires(Enumeration value) {
  enum_name(value);
};
}  // namespace detail

/// Returns the name of an enumerator, as code writes it: "read_write". Every enumeration of this
/// library has names. A value that is no enumerator is "unknown".
template <detail::named_enumeration Enumeration>
std::string_view to_string(Enumeration value) noexcept {
  return detail::enum_name(value);
}

/// Writes what `to_string` returns for `value`: an enumerator, an address, a URL, a digest, a
/// version, a descriptor.
template <class Value, class Traits>
requires requires(const Value& value) {
  { to_string(value) } -> std::convertible_to<std::string_view>;
}
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out,
                                             const Value& value) {
  return out << std::string_view(to_string(value));
}

}  // namespace ucx
