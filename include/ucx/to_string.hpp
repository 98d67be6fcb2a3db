// The names of enumerators, and `<<` for all that has a text.
#pragma once

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
  detail::enum_name(value);  // qualified: other namespaces may have a function of this name
};

/// True of the types that `<<` writes by `to_string`: enumerations, and classes with a
/// specialisation beside themselves. A stream of namespace ucx brings `<<` to values of all types.
template <class Value>
inline constexpr bool is_printed = named_enumeration<Value>;

template <class Value>
concept printed = is_printed<Value>;
}  // namespace detail

/// Returns the name of an enumerator, as code writes it: "read_write". Every enumeration of this
/// library has names. A value that is no enumerator is "unknown".
template <detail::named_enumeration Enumeration>
std::string_view to_string(Enumeration value) noexcept {
  return detail::enum_name(value);
}

/// Writes what `to_string` returns for `value`: an enumerator, an address, a URL, a digest, a
/// version, a descriptor.
template <detail::printed Value, class Traits>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out,
                                             const Value& value) {
  return out << std::string_view(to_string(value));
}

}  // namespace ucx
