#include "output/size_option.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <string_view>

namespace ucx::tool {
namespace {

/// Returns whether the parser knows the unit: "", "B", "k", "MB", "GiB".
bool is_unit(std::string_view text) {
  constexpr std::string_view prefixes = "kKmMgGtTpPeE";
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  if (!text.empty() && prefixes.find(text.front()) != prefixes.npos) {
    text.remove_prefix(1);
    if (text.starts_with('i') || text.starts_with('I')) text.remove_prefix(1);
  }
  return text.empty() || text == "b" || text == "B";
}

/// Says what is wrong with `text` as a number of bytes where the parser would not, or not in words
/// for people. That is a sign, which the parser lets wrap around, or a leading zero, which it takes
/// for octal. It is also more digits than any size has, a fraction, or a unit that is none.
std::string complaint_about_size(const std::string& text) {
  constexpr std::size_t most_digits = 18;
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const bool octal = digits > 1 && text[0] == '0';
  const bool whole = is_unit(std::string_view(text).substr(digits));
  if (digits > 0 && digits <= most_digits && !octal && whole) return {};
  return "\"" + text + "\" is not a whole number of bytes, such as 4096, 4K or 1MiB";
}

void take_sizes(CLI::Option& option) {
  option.transform(CLI::AsSizeValue(false).description(""))
      ->transform(CLI::Validator(complaint_about_size, ""))
      ->type_name("N");
}

}  // namespace

CLI::Option* add_size(CLI::App& command, const std::string& name, std::uint64_t& size,
                      const std::string& what) {
  CLI::Option* const option = command.add_option(name, size, what);
  take_sizes(*option);
  return option;
}

void add_rate(CLI::App& command, std::uint64_t& rate) {
  const auto complain = [](const std::string& bytes) {
    return std::string(bytes == "0" ? "at 0 bytes in a second it would never end" : "");
  };
  add_size(command, "--bwlimit", rate, "bytes in a second at most")
      ->type_name("RATE")
      ->check(CLI::Validator(complain, ""));
}

void add_sizes(CLI::App& command, const std::string& name, std::vector<std::uint64_t>& sizes,
               const std::string& what) {
  // Else the URL behind it would be taken for another size.
  take_sizes(
      *command.add_option(name, sizes, what)->expected(1)->allow_extra_args(false)->take_all());
}

std::optional<std::uint64_t> size_in(std::string text) {
  if (!complaint_about_size(text).empty()) return std::nullopt;
  try {
    CLI::AsSizeValue(false)(text);
  } catch (const CLI::ValidationError&) {
    return std::nullopt;
  }
  std::uint64_t size = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), size);
  const bool whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
  return whole ? std::optional(size) : std::nullopt;
}

}  // namespace ucx::tool
