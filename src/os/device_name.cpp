#include "os/device_name.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <system_error>

namespace ucx::detail {
namespace {

/// Takes a number in decimal off the front of `rest`.
std::optional<std::uint32_t> take_number(std::string_view& rest) noexcept {
  std::uint32_t number = 0;
  const char* const end = rest.data() + rest.size();
  const auto [next, ec] = std::from_chars(rest.data(), end, number);
  if (ec != std::errc() || next == rest.data()) return std::nullopt;
  rest.remove_prefix(static_cast<std::size_t>(next - rest.data()));
  return number;
}

bool take(std::string_view& rest, char letter) noexcept {
  if (!rest.starts_with(letter)) return false;
  rest.remove_prefix(1);
  return true;
}

/// Two numbers in brackets, "[0-3]".
struct number_range {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};

/// Takes a range off the front of `rest`, which stays as it is where there is none.
std::optional<number_range> take_range(std::string_view& rest) noexcept {
  std::string_view left = rest;
  if (!take(left, '[')) return std::nullopt;
  const std::optional<std::uint32_t> first = take_number(left);
  if (!first || !take(left, '-')) return std::nullopt;
  const std::optional<std::uint32_t> last = take_number(left);
  if (!last || !take(left, ']')) return std::nullopt;
  rest = left;
  return number_range{*first, *last};
}

bool is_digit(char letter) noexcept { return letter >= '0' && letter <= '9'; }

/// Compares two names. A range in `asked` stands for each number in it, written without leading
/// zeros.
bool is_spelled(std::string_view asked, std::string_view listed) noexcept {
  while (!asked.empty()) {
    if (const std::optional<number_range> range = take_range(asked)) {
      if (listed.size() > 1 && listed[0] == '0' && is_digit(listed[1])) return false;
      const std::optional<std::uint32_t> number = take_number(listed);
      if (!number || *number < range->first || *number > range->last) return false;
    } else {
      if (!take(listed, asked.front())) return false;
      asked.remove_prefix(1);
    }
  }
  return listed.empty();
}

}  // namespace

device_name parse_device_name(std::string_view text) noexcept {
  const std::size_t colon = std::min(text.find(':'), text.size());
  return {text.substr(0, colon), text.substr(std::min(colon + 1, text.size()))};
}

bool names_device(std::string_view asked, std::string_view listed) noexcept {
  if (asked.empty()) return false;
  return asked == "all" || is_spelled(asked, listed) ||
         (parse_device_name(asked).port.empty() && !asked.ends_with(':') &&
          is_spelled(asked, parse_device_name(listed).device));
}

std::string without_blanks(std::string_view list) {
  std::string kept;
  std::copy_if(list.begin(), list.end(), std::back_inserter(kept),
               [](char letter) { return letter != ' ' && letter != '\t' && letter != '\n'; });
  return kept;
}

std::string spelled_out(std::string_view list, const std::vector<std::string>& listed) {
  std::string made(take(list, '^') ? "^" : "");
  const std::size_t front = made.size();
  const auto add = [&](std::string_view name) {
    made.append(made.size() == front ? "" : ",").append(name);
  };
  while (!list.empty()) {
    const std::string_view word = take_word(list);
    const std::size_t before = made.size();
    if (word != "all" && std::find(listed.begin(), listed.end(), word) == listed.end()) {
      for (const std::string& each : listed) {
        if (names_device(word, each)) add(each);
      }
    }
    if (made.size() == before && !word.empty()) add(word);
  }
  return made;
}

std::string_view take_word(std::string_view& list) noexcept {
  const std::size_t end = std::min(list.find(','), list.size());
  const std::string_view word = list.substr(0, end);
  list.remove_prefix(std::min(end + 1, list.size()));
  return word;
}

bool allows_device(std::string_view list, std::string_view listed) noexcept {
  const bool negated = take(list, '^');
  while (!list.empty()) {
    if (names_device(take_word(list), listed)) return !negated;
  }
  return negated;
}

std::size_t count_devices(std::string_view list) noexcept {
  std::size_t count = 0;
  while (!list.empty()) {
    std::string_view word = take_word(list);
    std::size_t product = 1;
    while (!word.empty()) {
      const std::optional<number_range> range = take_range(word);
      if (!range) {
        word.remove_prefix(1);
      } else if (range->first <= range->last && product <= most_devices) {
        product *= std::size_t{range->last} - range->first + 1;
      }
    }
    count += product;
  }
  return count;
}

std::string_view transport_of(std::string_view resource) noexcept {
  return resource.substr(0, resource.find('/'));
}

std::string_view device_of(std::string_view resource) noexcept {
  const std::size_t slash = resource.find('/');
  return slash == std::string_view::npos ? resource : resource.substr(slash + 1);
}

}  // namespace ucx::detail
