#include "ucp/configuration_value.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <limits>

namespace ucx::detail {
namespace {

constexpr char lower(char letter) noexcept {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

bool same_word(std::string_view a, std::string_view b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

bool is_word(std::string_view value, std::initializer_list<std::string_view> words) noexcept {
  return std::any_of(words.begin(), words.end(),
                     [value](std::string_view word) { return same_word(value, word); });
}

/// Takes what stands before the first `separator` off the front of `rest`.
std::string_view cut(std::string_view& rest, char separator) noexcept {
  const std::size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view front = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return front;
}

bool is_choice(std::string_view value, std::string_view choices) noexcept {
  while (!choices.empty()) {
    if (same_word(value, cut(choices, '|'))) return true;
  }
  return false;
}

/// Reads a number off the front of `rest`; false if there is none, or it does not fit.
template <class Number>
bool take_number(std::string_view& rest, Number& value) noexcept {
  const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (problem != std::errc()) return false;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return true;
}

template <class Number>
bool is_number(std::string_view text) noexcept {
  Number value{};
  return take_number(text, value) && text.empty();
}

/// Reads a finite real number off the front of `rest`.
bool take_real(std::string_view& rest, double& value) noexcept {
  const bool digits = !rest.empty() && (rest.front() == '-' || rest.front() == '.' ||
                                        (rest.front() >= '0' && rest.front() <= '9'));
  return digits && take_number(rest, value) && std::isfinite(value);
}

bool is_duration(std::string_view text) noexcept {
  double value = 0;
  if (!take_real(text, value) || value < 0) return false;
  static constexpr std::array<std::string_view, 6> units{"", "m", "s", "ms", "us", "ns"};
  return std::find(units.begin(), units.end(), text) != units.end();
}

bool is_bandwidth(std::string_view text) noexcept {
  double value = 0;
  if (!take_real(text, value) || value < 0 || text.empty()) return false;
  if (std::string_view("KMGT").find(text.front()) != std::string_view::npos) text.remove_prefix(1);
  if (text.empty() || (text.front() != 'B' && text.front() != 'b')) return false;
  text.remove_prefix(1);
  return text == "ps" || text == "/s" || text == "s";
}

bool is_range(std::string_view text) noexcept {
  std::uint32_t first = 0;
  if (!take_number(text, first)) return false;
  if (text.empty()) return true;
  if (text.front() != '-') return false;
  text.remove_prefix(1);
  std::uint32_t last = 0;
  return take_number(text, last) && text.empty() && first <= last;
}

bool is_hexadecimal(std::string_view text) noexcept {
  if (text.size() < 3 || text[0] != '0' || lower(text[1]) != 'x') return false;
  text.remove_prefix(2);
  std::uint32_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return problem == std::errc() && end == text.data() + text.size();
}

bool is_positive(std::string_view text) noexcept {
  double value = 0;
  return take_real(text, value) && text.empty() && value > 0;
}

/// Removes `front` from the front of `text`, if it is there.
bool skip(std::string_view& text, std::string_view front) noexcept {
  if (!text.starts_with(front)) return false;
  text.remove_prefix(front.size());
  return true;
}

/// Returns the text between `text`'s first "[" and the next "]".
std::string_view bracketed(std::string_view text) noexcept {
  const std::size_t begin = text.find('[');
  if (begin == std::string_view::npos) return {};
  const std::size_t end = text.find(']', begin);
  if (end == std::string_view::npos) return {};
  return text.substr(begin + 1, end - begin - 1);
}

struct documented_form {
  std::string_view begins;
  value_rule::form form;
};

// Longer beginnings before the shorter ones that they contain.
constexpr std::array<documented_form, 19> documented_forms{{
    {"<y|n>", value_rule::form::boolean},
    {"<yes|no|try|auto>", value_rule::form::ternary_or_auto},
    {"<yes|no|try>", value_rule::form::ternary},
    {"<on|off|auto>", value_rule::form::on_off_auto},
    {"memory units", value_rule::form::size},
    {"unsigned long:", value_rule::form::count_or_auto},
    {"unsigned long", value_rule::form::count},
    {"unsigned integer", value_rule::form::natural},
    {"integer", value_rule::form::integer},
    {"floating point number", value_rule::form::real},
    {"positive floating point number", value_rule::form::positive_or_auto},
    {"time value: <number>[s|us|ms|ns],", value_rule::form::duration_or_auto},
    {"time value: <number>[m|s|ms|us|ns],", value_rule::form::duration_or_auto},
    {"time value", value_rule::form::duration},
    {"bandwidth value", value_rule::form::bandwidth},
    {"numbers range", value_rule::form::range},
    {"hex representation", value_rule::form::hexadecimal},
    {"string", value_rule::form::text},
    {"[", value_rule::form::choice},
}};

std::string_view description_of(value_rule::form form) noexcept {
  switch (form) {
    case value_rule::form::boolean:
      return "y or n";
    case value_rule::form::ternary:
      return "y, n or try";
    case value_rule::form::ternary_or_auto:
      return "y, n, try or auto";
    case value_rule::form::on_off_auto:
      return "on, off or auto";
    case value_rule::form::natural:
      return "a number, or inf";
    case value_rule::form::integer:
      return "a whole number";
    case value_rule::form::count:
      return "a number";
    case value_rule::form::count_or_auto:
      return "a number, inf or auto";
    case value_rule::form::size:
      return "a number of bytes, as 8192, 8k, 1m, inf or auto";
    case value_rule::form::real:
      return "a number, as 0.25";
    case value_rule::form::positive_or_auto:
      return "a number above zero, or auto";
    case value_rule::form::duration:
      return "a time, as 30s, 5ms or 10us";
    case value_rule::form::duration_or_auto:
      return "a time, as 30s or 5ms, or inf or auto";
    case value_rule::form::bandwidth:
      return "a bandwidth, as 100MBps or 10Gbps, or auto";
    case value_rule::form::range:
      return "a number or a range, as 7000-7100";
    case value_rule::form::hexadecimal:
      return "a hexadecimal number, as 0x7fff, or auto";
    case value_rule::form::anything:
    case value_rule::form::text:
    case value_rule::form::choice:
      break;
  }
  return "text without control characters";
}

}  // namespace

value_rule::value_rule(form single, std::string_view choices, arity count)
    : form_(single), arity_(count), choices_(choices) {}

value_rule value_rule::keyed(form single, std::string_view keys) {
  value_rule rule(single, {}, arity::keyed);
  rule.keys_ = keys;
  std::replace(rule.keys_.begin(), rule.keys_.end(), ',', '|');
  return rule;
}

value_rule value_rule::of_syntax(std::string_view documented) {
  arity count = arity::one;
  std::string_view keys;
  if (skip(documented, "comma-separated list of value or key:value pairs")) {
    count = arity::keyed;
    keys = bracketed(documented);
    const std::size_t value = documented.find("value is: ");
    if (keys.empty() || value == std::string_view::npos) return value_rule(form::anything);
    documented.remove_prefix(value + std::string_view("value is: ").size());
  } else if (skip(documented, "comma-separated list of: ")) {
    count = arity::list;
  } else if (documented.starts_with("comma-separated list (")) {
    const std::size_t of = documented.rfind(") of: ");
    if (of == std::string_view::npos) return value_rule(form::anything);
    documented.remove_prefix(of + std::string_view(") of: ").size());
    count = arity::allowed;
  }
  for (const documented_form& known : documented_forms) {
    if (!documented.starts_with(known.begins)) continue;
    if (count == arity::keyed) return keyed(known.form, keys);
    const bool choice = known.form == form::choice;
    return value_rule(known.form, choice ? bracketed(documented) : std::string_view(), count);
  }
  return value_rule(form::anything);
}

bool value_rule::accepts(std::string_view value) const {
  const bool printable = std::all_of(value.begin(), value.end(), [](char letter) {
    return static_cast<unsigned char>(letter) >= ' ' && letter != '\x7f';
  });
  if (!printable) return false;
  if (arity_ == arity::keyed) return accepts_pairs(value);
  if (arity_ == arity::one) return accepts_one(value);
  if (arity_ == arity::allowed) skip(value, "^");
  if (value.empty() || value.back() == ',') return false;
  while (!value.empty()) {
    const std::string_view element = cut(value, ',');
    if (element.empty() || !accepts_one(element)) return false;
  }
  return true;
}

bool value_rule::accepts_one(std::string_view value) const {
  switch (form_) {
    case form::anything:
    case form::text:
      return true;
    case form::boolean:
      return is_word(value, {"y", "yes", "1", "n", "no", "0"});
    case form::ternary:
      return is_word(value, {"y", "yes", "1", "n", "no", "0", "try", "maybe"});
    case form::ternary_or_auto:
      return is_word(value, {"y", "yes", "1", "n", "no", "0", "try", "maybe", "auto"});
    case form::on_off_auto:
      return is_word(value, {"on", "y", "yes", "1", "off", "n", "no", "0", "try", "maybe", "auto"});
    case form::natural:
      return is_word(value, {"inf"}) || is_number<std::uint32_t>(value);
    case form::integer:
      return is_number<std::int32_t>(value);
    case form::count:
      return is_number<std::uint64_t>(value);
    case form::count_or_auto:
      return is_word(value, {"inf", "auto"}) || is_number<std::uint64_t>(value);
    case form::size:
      return is_word(value, {"inf", "auto"}) || read_size(value).has_value();
    case form::real: {
      double ignored = 0;
      return take_real(value, ignored) && value.empty();
    }
    case form::positive_or_auto:
      return is_word(value, {"auto"}) || is_positive(value);
    case form::duration:
      return is_duration(value);
    case form::duration_or_auto:
      // In lower case only: UCX compares these two words exactly.
      return value == "inf" || value == "auto" || is_duration(value);
    case form::bandwidth:
      return is_word(value, {"auto"}) || is_bandwidth(value);
    case form::range:
      return is_range(value);
    case form::hexadecimal:
      return is_word(value, {"auto"}) || is_hexadecimal(value);
    case form::choice:
      return is_choice(value, choices_);
  }
  return false;
}

bool value_rule::accepts_pairs(std::string_view value) const {
  bool has_default = false;
  std::string missing = '|' + keys_ + '|';
  if (value.empty() || value.back() == ',') return false;
  while (!value.empty()) {
    std::string_view pair = cut(value, ',');
    if (pair.find(':') == std::string_view::npos) {
      has_default = true;
      if (!accepts_one(pair)) return false;
      continue;
    }
    const std::string key = '|' + std::string(cut(pair, ':')) + '|';
    const std::size_t at = missing.find(key);
    if (at == std::string::npos || !accepts_one(pair)) return false;
    missing.erase(at, key.size() - 1);  // the last bar closes the gap
  }
  // UCX refuses a value that leaves a key open.
  return has_default || missing == "|";
}

std::string value_rule::description() const {
  std::string one(description_of(form_));
  if (form_ == form::choice) {
    one = choices_;
    for (std::size_t at = 0; (at = one.find('|', at)) != std::string::npos; at += 2) {
      one.replace(at, 1, ", ");
    }
    one.insert(0, "one of ");
  }
  switch (arity_) {
    case arity::one:
      return one;
    case arity::list:
      return "a list separated by commas, each " + one;
    case arity::allowed:
      return "a list separated by commas (\"^\" in front negates it), each " + one;
    case arity::keyed:
      break;
  }
  return one + ", alone or as key:value pairs separated by commas, with the keys " + keys_;
}

std::optional<std::uint64_t> read_size(std::string_view text) noexcept {
  std::uint64_t value = 0;
  if (!take_number(text, value)) return std::nullopt;
  unsigned shift = 0;
  if (!text.empty()) {
    const std::size_t unit = std::string_view("bkmgt").find(lower(text.front()));
    if (unit == std::string_view::npos) return std::nullopt;
    shift = static_cast<unsigned>(10 * unit);
    text.remove_prefix(1);
    if (!text.empty() && !same_word(text, "b")) return std::nullopt;
  }
  // UCX reads a signed number, and keeps the largest values for inf and auto.
  const std::uint64_t most = std::uint64_t{std::numeric_limits<std::int64_t>::max()};
  if (value > (most >> shift)) return std::nullopt;
  return value << shift;
}

}  // namespace ucx::detail
