#include "commands/call_values.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "commands/base64.hpp"
#include "output/exit_code.hpp"
#include "ucx/error.hpp"

namespace ucx::tool {
namespace {

using json = nlohmann::ordered_json;
using kind = call_value_type::kind;

constexpr const char* not_a_number = "NaN";
constexpr const char* infinite = "Infinity";
constexpr const char* minus_infinite = "-Infinity";

/// Returns a value for people, cut where it is long.
std::string shown(const json& value) {
  constexpr std::size_t most = 60;
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > most) text.replace(most, std::string::npos, "...");
  return text;
}

[[noreturn]] void refuse(const json& value, const call_value_type& type) {
  throw failure(exit_code::usage, fmt::format("{} is no {}", shown(value), type.word));
}

[[noreturn]] void refuse_twice(const std::string& key) {
  throw failure(exit_code::usage, fmt::format("{} stands twice in an object", shown(key)));
}

/// Returns the value of a text, which is discarded where it is no JSON. Errors: failure where a key
/// stands twice in an object.
json parsed(const std::string& text) {
  std::vector<std::set<std::string>> open;  // the keys of the objects around
  return json::parse(
      text,
      [&open](int, json::parse_event_t event, json& part) {
        if (event == json::parse_event_t::object_start) open.emplace_back();
        if (event == json::parse_event_t::object_end) open.pop_back();
        if (event == json::parse_event_t::key) {
          const std::string& key = part.get_ref<const std::string&>();
          if (!open.back().insert(key).second) refuse_twice(key);
        }
        return true;
      },
      false);
}

struct integer_range {
  std::int64_t least;
  std::uint64_t most;
};

/// Of "i8" to "u64".
integer_range range_of(const std::string& word) {
  const unsigned bits = word.back() == '8'     ? 8U
                        : word.ends_with("16") ? 16U
                        : word.ends_with("32") ? 32U
                                               : 64U;
  const std::uint64_t all = std::numeric_limits<std::uint64_t>::max() >> (64U - bits);
  if (word.front() == 'u') return {0, all};
  return {-static_cast<std::int64_t>(all / 2) - 1, all / 2};
}

void write_integer(const call_value_type& type, const json& value, call_writer& to) {
  const integer_range range = range_of(type.word);
  if (value.is_number_unsigned() && value.get<std::uint64_t>() <= range.most) {
    to.unsigned_integer(value.get<std::uint64_t>());
  } else if (value.is_number_integer() && !value.is_number_unsigned() &&
             value.get<std::int64_t>() >= range.least) {  // it has a minus
    to.integer(value.get<std::int64_t>());
  } else {
    refuse(value, type);
  }
}

double number_of(const call_value_type& type, const json& value) {
  if (value == not_a_number) return std::numeric_limits<double>::quiet_NaN();
  if (value == infinite) return std::numeric_limits<double>::infinity();
  if (value == minus_infinite) return -std::numeric_limits<double>::infinity();
  if (!value.is_number()) refuse(value, type);
  // "-0" is an integer with a sign, "0" one without.
  if (value.type() == json::value_t::number_integer && value == 0) return -0.0;
  return value.get<double>();
}

void write_float32(const call_value_type& type, const json& value, call_writer& to) {
  const double number = number_of(type, value);
  if (std::isfinite(number) && std::abs(number) > double{std::numeric_limits<float>::max()}) {
    refuse(value, type);
  }
  to.float32(static_cast<float>(number));
}

void write_bytes(const call_value_type& type, const json& value, call_writer& to) {
  const auto bytes = value.is_string() ? bytes_of_base64(value.get_ref<const std::string&>())
                                       : std::optional<std::vector<std::byte>>();
  if (!bytes) refuse(value, type);
  to.bytes(*bytes);
}

void write_value(const call_value_type& type, const json& value, call_writer& to);

void write_list(const call_value_type& type, const json& value, std::optional<std::size_t> count,
                call_writer& to) {
  if (!value.is_array()) refuse(value, type);
  if (count && value.size() != *count) {
    throw failure(exit_code::usage, fmt::format("{} has not {} elements", shown(value), *count));
  }
  to.list(value.size());
  for (std::size_t i = 0; i < value.size(); ++i) {
    write_value(type.what == kind::tuple ? type.parts[i] : type.parts[0], value[i], to);
  }
}

/// A key is text in JSON.
json value_of_key(const call_value_type& type, const std::string& key) {
  if (type.what == kind::text) return key;
  json value = parsed(key);
  if (value.is_discarded()) refuse(key, type);
  return value;
}

void write_map(const call_value_type& type, const json& value, call_writer& to) {
  if (!value.is_object()) refuse(value, type);
  to.map(value.size());
  std::set<json> keys;  // "7" and " 7" are one
  for (const auto& [key, each] : value.items()) {
    const json made = value_of_key(type.parts[0], key);
    if (!keys.insert(made).second) refuse_twice(key);
    write_value(type.parts[0], made, to);
    write_value(type.parts[1], each, to);
  }
}

/// A field that may be empty may be missing.
void write_record(const call_value_type& type, const json& value, call_writer& to) {
  if (!value.is_object()) refuse(value, type);
  to.list(type.fields.size());
  std::size_t found = 0;
  for (std::size_t i = 0; i < type.fields.size(); ++i) {
    const auto at = value.find(type.fields[i]);
    if (at != value.end()) {
      ++found;
      write_value(type.parts[i], *at, to);
    } else if (type.parts[i].what == kind::optional) {
      to.nil();
    } else {
      throw failure(exit_code::usage,
                    fmt::format("{} has no \"{}\"", shown(value), type.fields[i]));
    }
  }
  if (found == value.size()) return;
  throw failure(exit_code::usage,
                fmt::format("{} has members that \"{}\" has not", shown(value), type.word));
}

void write_value(const call_value_type& type, const json& value, call_writer& to) {
  switch (type.what) {
    case kind::boolean:
      if (!value.is_boolean()) refuse(value, type);
      to.boolean(value.get<bool>());
      return;
    case kind::integer:
      return write_integer(type, value, to);
    case kind::f32:
      return write_float32(type, value, to);
    case kind::f64:
      to.float64(number_of(type, value));
      return;
    case kind::text:
      if (!value.is_string()) refuse(value, type);
      to.text(value.get_ref<const std::string&>());
      return;
    case kind::bytes:
      return write_bytes(type, value, to);
    case kind::list:
      return write_list(type, value, std::nullopt, to);
    case kind::array:
      return write_list(type, value, type.count, to);
    case kind::tuple:
      return write_list(type, value, type.parts.size(), to);
    case kind::optional:
      if (!value.is_null()) return write_value(type.parts[0], value, to);
      to.nil();
      return;
    case kind::map:
      return write_map(type, value, to);
    case kind::record:
      return write_record(type, value, to);
    case kind::nil:
    case kind::other:
      break;
  }
  throw failure(exit_code::failure,
                fmt::format("an argument of the type \"{}\" can not be said here", type.word));
}

json json_of_number(double number) {
  if (std::isnan(number)) return not_a_number;
  if (std::isinf(number)) return number > 0 ? infinite : minus_infinite;
  return number;
}

/// JSON has no float of 32 bits: the shortest digits that mean the same one.
json json_of_float32(float number) {
  if (!std::isfinite(number)) return json_of_number(double{number});
  const std::string digits = fmt::format("{}", number);
  double made = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), made);
  return made;
}

json read_integer(const call_value_type& type, call_reader& from) {
  const integer_range range = range_of(type.word);
  if (type.word.front() == 'u') return from.unsigned_integer(range.most);
  return from.integer(range.least, static_cast<std::int64_t>(range.most));
}

json read_elements(const call_value_type& type, call_reader& from) {
  json made = json::array();
  const std::size_t count = from.list();
  const bool is_fit = type.what == kind::list ||
                      count == (type.what == kind::array ? type.count : type.parts.size());
  if (!is_fit) from.fail("a list has another number of elements");
  for (std::size_t i = 0; i < count && from.ok(); ++i) {
    if (!from.claim(1, sizeof(json))) break;
    made.push_back(read_result(type.what == kind::tuple ? type.parts[i] : type.parts[0], from));
  }
  return made;
}

/// A key is text in JSON. They are in the order of that.
json read_map(const call_value_type& type, call_reader& from) {
  std::map<std::string, json> made;
  for (std::size_t left = from.map(); left > 0 && from.ok(); --left) {
    if (!from.claim(1, sizeof(json) + sizeof(std::string))) break;
    const json key = read_result(type.parts[0], from);
    std::string name = key.is_string() ? key.get<std::string>() : key.dump();
    json each = read_result(type.parts[1], from);
    const bool is_new = made.try_emplace(std::move(name), std::move(each)).second;
    if (!is_new) from.fail("a key stands twice in a map");
  }
  return made;
}

json read_record(const call_value_type& type, call_reader& from) {
  json made = json::object();
  if (from.list() != type.fields.size()) from.fail("a record has another number of fields");
  for (std::size_t i = 0; i < type.fields.size() && from.ok(); ++i) {
    made[type.fields[i]] = read_result(type.parts[i], from);
  }
  return made;
}

}  // namespace

void write_argument(const call_value_type& type, const std::string& argument, call_writer& to) {
  if (type.what == kind::text || type.what == kind::bytes) return write_value(type, argument, to);
  const json value = parsed(argument);
  if (value.is_discarded()) {
    throw failure(exit_code::usage, fmt::format("{} is no JSON, and no {}", argument, type.word));
  }
  write_value(type, value, to);
}

json read_result(const call_value_type& type, call_reader& from) {
  switch (type.what) {
    case kind::boolean:
      return from.boolean();
    case kind::integer:
      return read_integer(type, from);
    case kind::f32:
      return json_of_float32(from.float32());
    case kind::f64:
      return json_of_number(from.float64());
    case kind::text:
      return std::string(from.text());
    case kind::bytes:
      return base64_of(from.bytes());
    case kind::list:
    case kind::array:
    case kind::tuple:
      return read_elements(type, from);
    case kind::optional:
      return from.nil() ? json() : read_result(type.parts[0], from);
    case kind::map:
      return read_map(type, from);
    case kind::record:
      return read_record(type, from);
    case kind::nil:
      if (!from.nil()) from.fail("a nil is expected");
      return {};
    case kind::other:
      break;
  }
  from.fail("a type of a later version can not be shown");
  return {};
}

}  // namespace ucx::tool
