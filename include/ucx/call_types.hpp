// The C++ types of arguments and results: docs/reference/calls.md, "Types".
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "ucx/call_reader.hpp"
#include "ucx/call_writer.hpp"

namespace ucx {

namespace detail {
/// Bytes of an object at most that is read onto the stack. A vector has only its own few there.
inline constexpr std::size_t largest_call_object = std::size_t{256} << 10U;

// Not constexpr: a name that the compiler refuses ends here, and the error shows these lines.
void names_of_records_and_fields_have_letters_digits_and_underscores();
void a_record_is_not_named_as_a_wire_type();

/// Returns `name`, if it may be the name of a record or a field.
consteval std::string_view checked_call_word(std::string_view name) {
  bool is_word = !name.empty() && !(name.front() >= '0' && name.front() <= '9');
  for (const char c : name) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!is_letter && !(c >= '0' && c <= '9') && c != '_') is_word = false;
  }
  if (!is_word) names_of_records_and_fields_have_letters_digits_and_underscores();
  return name;
}
consteval std::string_view checked_record_name(std::string_view name) {
  for (const std::string_view each :
       {"bool",     "i8",    "i16", "i32",  "i64",    "u8",     "u16",   "u32",
        "u64",      "f32",   "f64", "text", "bytes",  "nil",    "list",  "array",
        "optional", "tuple", "map", "any",  "buffer", "tensor", "window"}) {
    if (name == each) a_record_is_not_named_as_a_wire_type();
  }
  return checked_call_word(name);
}
}  // namespace detail

/// A field of a record: its name in signatures, and its member.
template <class Record, class Member>
struct call_field {
  consteval call_field(std::string_view called, Member Record::*which)
      : name(detail::checked_call_word(called)), member(which) {}

  using type = Member;
  std::string_view name;
  Member Record::*member;
};

/// Specialise it for a structure that is an argument or a result. Both sides have the same names
/// and fields, in the same order.
///
///     template <>
///     struct ucx::call_fields<point> {
///       static constexpr std::string_view name = "point";
///       static constexpr std::tuple fields{ucx::call_field("x", &point::x),
///                                          ucx::call_field("y", &point::y)};
///     };
template <class Record>
struct call_fields;

namespace detail {

template <class T>
concept call_character = std::same_as<T, char> || std::same_as<T, wchar_t> ||
    std::same_as<T, char8_t> || std::same_as<T, char16_t> || std::same_as<T, char32_t>;
template <class T>
concept call_integer =
    std::integral<T> && !std::same_as<T, bool> && !call_character<T> && sizeof(T) <= 8;
template <class T>
concept call_record = requires {
  call_fields<T>::name;
  call_fields<T>::fields;
};

/// How a type is described, written and read. `depth`: the lists and maps within each other in it.
/// `borrows`: what is read refers to the reader's bytes.
template <class T>
struct call_type {
  static constexpr bool is_refused =
      std::is_pointer_v<T> || std::is_same_v<T, long double> || call_character<T>;
  static_assert(!std::is_pointer_v<T>,
                "a pointer means nothing to a peer: pass the value, a std::string, or a "
                "std::string_view");
  static_assert(!std::is_same_v<T, long double>,
                "long double differs between machines: pass a double");
  static_assert(!call_character<T>,
                "char differs between machines: pass a std::string, or a std::int8_t");
  static_assert(is_refused, "this type has no wire type: specialise ucx::call_fields for it");

  static constexpr std::size_t depth = 0;
  static constexpr bool borrows = false;
  static void describe(std::string& text);
  static void write(call_writer& to, const T& value);
  static T read(call_reader& from);
};

struct call_scalar {
  static constexpr std::size_t depth = 0;
  static constexpr bool borrows = false;
};

template <>
struct call_type<bool> : call_scalar {
  static void describe(std::string& text) { text += "bool"; }
  static void write(call_writer& to, bool value) { to.boolean(value); }
  static bool read(call_reader& from) { return from.boolean(); }
};

template <call_integer T>
struct call_type<T> : call_scalar {
  using limits = std::numeric_limits<T>;

  static void describe(std::string& text) {
    text += std::is_signed_v<T> ? 'i' : 'u';
    text += std::to_string(8 * sizeof(T));
  }
  static void write(call_writer& to, T value) {
    if constexpr (std::is_signed_v<T>) {
      to.integer(value);
    } else {
      to.unsigned_integer(value);
    }
  }
  static T read(call_reader& from) {
    if constexpr (std::is_signed_v<T>) {
      return static_cast<T>(from.integer(limits::min(), limits::max()));
    } else {
      return static_cast<T>(from.unsigned_integer(limits::max()));
    }
  }
};

/// As its number. A number without an enumerator is passed on, too.
template <class T>
requires std::is_enum_v<T>
struct call_type<T> : call_type<std::underlying_type_t<T>> {
  static_assert(
      requires { T{std::underlying_type_t<T>{}}; },
      "an enumeration needs a fixed underlying type: enum e : int");
  using number = call_type<std::underlying_type_t<T>>;

  static void write(call_writer& to, T value) {
    number::write(to, static_cast<std::underlying_type_t<T>>(value));
  }
  static T read(call_reader& from) { return static_cast<T>(number::read(from)); }
};

template <>
struct call_type<float> : call_scalar {
  static void describe(std::string& text) { text += "f32"; }
  static void write(call_writer& to, float value) { to.float32(value); }
  static float read(call_reader& from) { return from.float32(); }
};

template <>
struct call_type<double> : call_scalar {
  static void describe(std::string& text) { text += "f64"; }
  static void write(call_writer& to, double value) { to.float64(value); }
  static double read(call_reader& from) { return from.float64(); }
};

template <>
struct call_type<std::string> : call_scalar {
  static void describe(std::string& text) { text += "text"; }
  static void write(call_writer& to, const std::string& value) { to.text(value); }
  static std::string read(call_reader& from) { return std::string(from.text()); }
};

template <>
struct call_type<std::string_view> {
  static constexpr std::size_t depth = 0;
  static constexpr bool borrows = true;
  static void describe(std::string& text) { text += "text"; }
  static void write(call_writer& to, std::string_view value) { to.text(value); }
  static std::string_view read(call_reader& from) { return from.text(); }
};

template <>
struct call_type<std::vector<std::byte>> : call_scalar {
  static void describe(std::string& text) { text += "bytes"; }
  static void write(call_writer& to, const std::vector<std::byte>& value) { to.bytes(value); }
  static std::vector<std::byte> read(call_reader& from) {
    const auto found = from.bytes();
    return {found.begin(), found.end()};
  }
};

/// Whether there is a buffer in a value of the type.
template <class T>
inline constexpr bool holds_memory = [] {
  if constexpr (requires { call_type<T>::has_memory; }) return call_type<T>::has_memory;
  return false;
}();

/// Writes a result, whose buffers become those of the call.
template <class T>
void write_result(call_writer& to, T&& value) {
  using type = call_type<std::remove_cvref_t<T>>;
  if constexpr (requires { type::give(to, std::forward<T>(value)); }) {
    type::give(to, std::forward<T>(value));
  } else {
    static_assert(!holds_memory<std::remove_cvref_t<T>>,
                  "a result gives its buffers away: return a ucx::buffer, or a tuple of them, by "
                  "value");
    type::write(to, value);
  }
}

/// Writes descriptions with commas between them.
template <class... Ts>
void describe_each(std::string& text) {
  std::size_t number = 0;
  ((text += number++ == 0 ? "" : ",", call_type<Ts>::describe(text)), ...);
}

/// Returns the depth of the deepest type.
template <class... Ts>
constexpr std::size_t deepest() {
  std::size_t most = 0;
  ((most = call_type<Ts>::depth > most ? call_type<Ts>::depth : most), ...);
  return most;
}

/// Reads the beginning of a list that has so many elements.
inline void expect_list(call_reader& from, std::size_t count) {
  if (from.list() != count) from.fail("the list before has another number of elements");
}

template <class Fields>
struct call_record_type;

/// The fields of a record, as a list: both sides know the names.
template <class... Records, class... Members>
struct call_record_type<std::tuple<call_field<Records, Members>...>> {
  static_assert(sizeof...(Members) > 0, "a record without fields has no wire type");
  static constexpr std::size_t depth = 1 + deepest<Members...>();
  static constexpr bool borrows = (call_type<Members>::borrows || ...);
  static constexpr bool has_memory = (holds_memory<Members> || ...);

  template <class Each>
  static void for_each(const std::tuple<call_field<Records, Members>...>& fields, Each each) {
    std::apply([&](const auto&... field) { (each(field), ...); }, fields);
  }
};

template <call_record T>
struct call_type<T> : call_record_type<std::remove_const_t<decltype(call_fields<T>::fields)>> {
  static void describe(std::string& text) {
    text += checked_record_name(call_fields<T>::name);
    char mark = '{';
    call_type::for_each(call_fields<T>::fields, [&](const auto& field) {
      text += mark;
      text += field.name;
      text += ':';
      type_of<decltype(field)>::describe(text);
      mark = ',';
    });
    text += '}';
  }
  static void write(call_writer& to, const T& value) {
    to.list(std::tuple_size_v<decltype(call_fields<T>::fields)>);
    call_type::for_each(call_fields<T>::fields, [&](const auto& field) {
      type_of<decltype(field)>::write(to, value.*field.member);
    });
  }
  static T read(call_reader& from) {
    T made{};
    expect_list(from, std::tuple_size_v<decltype(call_fields<T>::fields)>);
    call_type::for_each(call_fields<T>::fields, [&](const auto& field) {
      made.*field.member = type_of<decltype(field)>::read(from);
    });
    return made;
  }

 private:
  template <class Field>
  using type_of = call_type<typename std::remove_cvref_t<Field>::type>;
};

}  // namespace detail

}  // namespace ucx
