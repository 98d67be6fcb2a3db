#include "server/rule_list.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/name.hpp"
#include "carrier/certificate_name.hpp"
#include "carrier/token_text.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

constexpr std::string_view blanks = " \t";
constexpr std::size_t longest_account = 256;

constexpr std::pair<std::string_view, access_right> right_words[] = {
    {"list", access_right::list},     {"read", access_right::read},
    {"write", access_right::write},   {"create", access_right::create},
    {"remove", access_right::remove}, {"pipes", access_right::pipes},
    {"agent", access_right::agent},   {"fabric", access_right::fabric},
    {"call", access_right::call},     {"all", access_right::all}};

failure bad_rule(std::string text) { return failure{errc::bad_configuration, std::move(text)}; }

/// Takes the next word, and the blanks before it.
std::string_view take_rule_word(std::string_view& rest) noexcept {
  rest.remove_prefix(std::min(rest.find_first_not_of(blanks), rest.size()));
  const std::string_view word = rest.substr(0, rest.find_first_of(blanks));
  rest.remove_prefix(word.size());
  return word;
}

std::string_view trimmed_rule(std::string_view text) noexcept {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// A part of the rules, in the text of an error.
std::string quoted_rule(std::string_view text) {
  constexpr std::size_t most = 64;
  return "\"" + std::string(text.substr(0, most)) + (text.size() > most ? "..." : "") + "\"";
}

result<access_right> rights_in(std::string_view text) {
  unsigned found = 0;
  for (;;) {
    const std::string_view word = text.substr(0, text.find(','));
    const auto known = std::find_if(std::begin(right_words), std::end(right_words),
                                    [&](const auto& each) { return each.first == word; });
    if (known == std::end(right_words)) return bad_rule(quoted_rule(word) + " is no right");
    found |= static_cast<unsigned>(known->second);
    if (word.size() == text.size()) return static_cast<access_right>(found);
    text.remove_prefix(word.size() + 1);
  }
}

std::optional<std::uint32_t> number_in(std::string_view text) noexcept {
  std::uint32_t number = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (ec != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

result<rule_subject> account_in(bool is_group, std::string_view name,
                                const rule_list::lookup& accounts) {
  rule_subject made;
  made.what = is_group ? rule_subject::kind::group : rule_subject::kind::user;
  made.any = name == "*";
  if (made.any) return made;
  std::optional<std::uint32_t> number = number_in(name);
  if (!number && name.size() <= longest_account) number = accounts(is_group, std::string(name));
  if (!number) {
    return bad_rule("there is no " + std::string(is_group ? "group " : "user ") +
                    quoted_rule(name));
  }
  made.number = *number;
  return made;
}

/// Takes the words that say whom a line concerns.
result<rule_subject> take_subject(std::string_view& rest, const rule_list::lookup& accounts) {
  const std::string_view word = take_rule_word(rest);
  rule_subject made;
  if (word == "anybody") return made;
  made.what = rule_subject::kind::owner;
  if (word == "owner") return made;
  const bool by_certificate = word == "certificate";
  if (word != "token" && !by_certificate && word != "user" && word != "group") {
    return bad_rule(quoted_rule(word) +
                    " is none of anybody, owner, token, certificate, user and group");
  }
  const std::string_view name = take_rule_word(rest);
  if (name.empty()) return bad_rule("a name is missing behind " + quoted_rule(word));
  if (word == "user" || word == "group") return account_in(word == "group", name, accounts);
  made.what = by_certificate ? rule_subject::kind::certificate : rule_subject::kind::token;
  made.any = name == "*";
  if (made.any) return made;
  const std::string_view complaint =
      by_certificate ? complaint_about_certificate_name(name) : complaint_about_token_name(name);
  if (!complaint.empty()) {
    return bad_rule("the name of the " + std::string(word) + ' ' + std::string(complaint));
  }
  made.name = by_certificate ? comparable_certificate_name(name) : std::string(name);
  return made;
}

result<name_pattern> pattern_in(std::string_view text) {
  if (text.empty()) return bad_rule("a pattern of names is missing");
  if (text.size() > longest_name) return bad_rule("the pattern is longer than 1024 bytes");
  const bool is_text = valid_utf8(text) == text.size() && text.find('\0') == text.npos;
  if (!is_text) return bad_rule("the pattern is not UTF-8");
  std::optional<name_pattern> made = name_pattern::parse(text);
  if (!made) return bad_rule("the pattern ends in a backslash");
  return *std::move(made);
}

}  // namespace

bool rule_subject::includes(const peer_identity& who) const noexcept {
  switch (what) {
    case kind::anybody:
      return true;
    case kind::owner:
      return who.is_owner;
    case kind::token:
      return !who.token.empty() && (any || who.token == name);
    case kind::certificate:
      return !who.certificate.empty() && (any || who.certificate == name);
    case kind::user:
      return who.user && (any || *who.user == number);
    case kind::group:
      break;
  }
  return any ? !who.groups.empty()
             : std::find(who.groups.begin(), who.groups.end(), number) != who.groups.end();
}

result<void> rule_list::add(bool allows, std::string_view who, access_right rights,
                            std::string_view names, const lookup& accounts) {
  auto subject = take_subject(who, accounts);
  if (!subject) return subject.why();
  if (!trimmed_rule(who).empty()) return bad_rule(quoted_rule(trimmed_rule(who)) + " is too much");
  if (rights == access_right::none || !ucx::includes(access_right::all, rights)) {
    return bad_rule("a right is missing, or is none");
  }
  auto pattern = pattern_in(trimmed_rule(names));
  if (!pattern) return pattern.why();
  lines_.push_back({allows, *std::move(subject), rights, *std::move(pattern)});
  return {};
}

result<void> rule_list::add_text(std::string_view line, const lookup& accounts) {
  const std::string_view verb = take_rule_word(line);
  if (verb.empty() || verb.starts_with('#')) return {};
  if (verb != "allow" && verb != "deny") {
    return bad_rule(quoted_rule(verb) + " is neither \"allow\" nor \"deny\"");
  }
  auto subject = take_subject(line, accounts);
  if (!subject) return subject.why();
  const std::string_view words = take_rule_word(line);
  if (words.empty()) return bad_rule("the rights are missing");
  const auto rights = rights_in(words);
  if (!rights) return rights.why();
  auto pattern = pattern_in(trimmed_rule(line));
  if (!pattern) return pattern.why();
  lines_.push_back({verb == "allow", *std::move(subject), *rights, *std::move(pattern)});
  return {};
}

result<rule_list> rule_list::parse(std::string_view text, const std::string& source,
                                   const lookup& accounts) {
  if (text.size() > longest_text) return bad_rule(source + ": it has more than 1 MiB");
  rule_list made;
  for (std::size_t number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (const auto added = made.add_text(line, accounts); !added) {
      return bad_rule(source + ", line " + std::to_string(number) + ": " + added.why().text);
    }
  }
  return made;
}

bool rule_list::allows(const peer_identity& who, access_right wanted,
                       std::string_view name) const noexcept {
  auto open = static_cast<unsigned>(wanted);
  for (const rule_line& each : lines_) {
    const unsigned decided = open & static_cast<unsigned>(each.rights);
    if (decided == 0 || !each.who.includes(who) || !each.names.matches(name)) continue;
    if (!each.allows) return false;
    open &= ~decided;
    if (open == 0) return true;
  }
  return open == 0 || who.is_owner;
}

bool rule_list::may_allow_below(const peer_identity& who, access_right wanted,
                                std::string_view directory) const noexcept {
  for (const rule_line& each : lines_) {
    if (!ucx::includes(each.rights, wanted) || !each.who.includes(who)) continue;
    if (each.allows && each.names.matches_below(directory)) return true;
    if (!each.allows && each.names.matches_all_below(directory)) return false;
  }
  return who.is_owner;
}

bool rule_list::allows_all_below(const peer_identity& who, access_right wanted,
                                 std::string_view directory) const noexcept {
  auto open = static_cast<unsigned>(wanted);
  for (const rule_line& each : lines_) {
    const unsigned decided = open & static_cast<unsigned>(each.rights);
    if (decided == 0 || !each.who.includes(who)) continue;
    if (!each.allows && each.names.matches_below(directory)) return false;
    if (each.allows && each.names.matches_all_below(directory)) open &= ~decided;
    if (open == 0) return true;
  }
  return who.is_owner;
}

}  // namespace ucx::detail
