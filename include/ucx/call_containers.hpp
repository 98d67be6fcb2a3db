// Containers as arguments and results: docs/reference/calls.md, "Types".
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "ucx/call_reader.hpp"
#include "ucx/call_types.hpp"
#include "ucx/call_writer.hpp"

namespace ucx::detail {

template <class T>
struct call_type<std::vector<T>> {
  static_assert(sizeof(T) <= largest_call_object,
                "an element of a vector takes more than 256 KiB: put it in a vector");
  static constexpr std::size_t depth = 1 + call_type<T>::depth;
  static constexpr bool borrows = call_type<T>::borrows;
  static constexpr bool has_memory = holds_memory<T>;

  static void describe(std::string& text) {
    text += "list<";
    call_type<T>::describe(text);
    text += '>';
  }
  static void write(call_writer& to, const std::vector<T>& value) {
    to.list(value.size());
    for (const T& each : value) call_type<T>::write(to, each);
  }
  static std::vector<T> read(call_reader& from) {
    const std::size_t count = from.list();
    std::vector<T> made;
    if (!from.claim(count, sizeof(T))) return made;
    made.reserve(count);
    while (made.size() < count && from.ok()) made.push_back(call_type<T>::read(from));
    return made;
  }
};

template <class T, std::size_t Count>
struct call_type<std::array<T, Count>> {
  static_assert(Count > 0, "an array without elements has no wire type");
  static_assert(Count <= largest_call_object / sizeof(T),
                "an array takes more than 256 KiB: put it in a vector");
  static constexpr std::size_t depth = 1 + call_type<T>::depth;
  static constexpr bool borrows = call_type<T>::borrows;
  static constexpr bool has_memory = holds_memory<T>;

  static void describe(std::string& text) {
    text += "array<";
    call_type<T>::describe(text);
    text += ',' + std::to_string(Count) + '>';
  }
  static void write(call_writer& to, const std::array<T, Count>& value) {
    to.list(Count);
    for (const T& each : value) call_type<T>::write(to, each);
  }
  static std::array<T, Count> read(call_reader& from) {
    std::array<T, Count> made{};
    expect_list(from, Count);
    for (std::size_t i = 0; i < Count && from.ok(); ++i) made[i] = call_type<T>::read(from);
    return made;
  }
};

template <class T>
struct call_type<std::optional<T>> {
  static constexpr std::size_t depth = call_type<T>::depth;
  static constexpr bool borrows = call_type<T>::borrows;
  static constexpr bool has_memory = holds_memory<T>;

  static void describe(std::string& text) {
    text += "optional<";
    call_type<T>::describe(text);
    text += '>';
  }
  static void write(call_writer& to, const std::optional<T>& value) {
    if (value) {
      call_type<T>::write(to, *value);
    } else {
      to.nil();
    }
  }
  static std::optional<T> read(call_reader& from) {
    if (from.nil()) return std::nullopt;
    return call_type<T>::read(from);
  }
};

template <class T>
struct call_type<std::optional<std::optional<T>>> : call_type<T> {
  static_assert(sizeof(T) == 0, "an optional of an optional: a nil would say which is empty");
};

/// A list of values whose types differ.
template <class Row, class... Ts>
struct call_row {
  static_assert(sizeof...(Ts) > 0, "a tuple without elements has no wire type");
  static constexpr std::size_t depth = 1 + deepest<Ts...>();
  static constexpr bool borrows = (call_type<Ts>::borrows || ...);
  static constexpr bool has_memory = (holds_memory<Ts> || ...);

  static void describe(std::string& text) {
    text += "tuple<";
    describe_each<Ts...>(text);
    text += '>';
  }
  static void write(call_writer& to, const Row& value) {
    to.list(sizeof...(Ts));
    std::apply([&](const Ts&... each) { (call_type<Ts>::write(to, each), ...); }, value);
  }
  static void give(call_writer& to, Row&& value) {
    to.list(sizeof...(Ts));
    std::apply([&](Ts&... each) { (write_result(to, std::move(each)), ...); }, value);
  }
  static Row read(call_reader& from) {
    expect_list(from, sizeof...(Ts));
    return Row{call_type<Ts>::read(from)...};  // braces: from the first to the last
  }
};

template <class... Ts>
struct call_type<std::tuple<Ts...>> : call_row<std::tuple<Ts...>, Ts...> {};

template <class First, class Second>
struct call_type<std::pair<First, Second>> : call_row<std::pair<First, Second>, First, Second> {};

template <class Key, class T>
struct call_type<std::map<Key, T>> {
  static_assert(std::is_integral_v<Key> || std::is_enum_v<Key> || std::is_same_v<Key, std::string>,
                "the key of a map is a bool, an integer, an enumeration or a std::string");
  static_assert(sizeof(T) <= largest_call_object,
                "a value of a map takes more than 256 KiB: put it in a vector");
  static constexpr std::size_t depth = 1 + call_type<T>::depth;
  static constexpr bool borrows = call_type<T>::borrows;
  static constexpr bool has_memory = holds_memory<T>;

  static void describe(std::string& text) {
    text += "map<";
    describe_each<Key, T>(text);
    text += '>';
  }
  static void write(call_writer& to, const std::map<Key, T>& value) {
    to.map(value.size());
    for (const auto& [key, each] : value) {
      call_type<Key>::write(to, key);
      call_type<T>::write(to, each);
    }
  }
  static std::map<Key, T> read(call_reader& from) {
    constexpr std::size_t links = 4 * sizeof(void*);  // of each pair, beside it
    std::map<Key, T> made;
    std::size_t left = from.map();
    if (!from.claim(left, links + sizeof(std::pair<const Key, T>))) return made;
    for (; left > 0 && from.ok(); --left) {
      Key key = call_type<Key>::read(from);
      const bool is_new = made.try_emplace(std::move(key), call_type<T>::read(from)).second;
      if (!is_new) from.fail("a key stands twice in a map");
    }
    return made;
  }
};

}  // namespace ucx::detail
