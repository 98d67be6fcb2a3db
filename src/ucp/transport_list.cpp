#include "ucp/transport_list.hpp"

#include <unistd.h>

#include <algorithm>

#include "os/device_name.hpp"
#include "ucp/transport_group.hpp"

namespace ucx::detail {
namespace {

bool is_group(std::string_view name) noexcept {
  return name == "sm" || name == "shm" || name == "mm";
}

/// Returns what is left of UCX's group `name` without the open ones.
std::vector<std::string> members_of(std::string_view name) {
  if (name == "mm") return {"posix"};
  std::vector<std::string> members{"posix", "cma"};
  // UCX warns of a transport that was named and is not there.
  if (::access("/dev/knem", F_OK) == 0) members.emplace_back("knem");
  return members;
}

}  // namespace

transport_list::transport_list(std::string_view value) {
  const std::string whole = without_blanks(value);
  std::string_view rest = whole;
  negated_ = rest.starts_with('^');
  if (negated_) rest.remove_prefix(1);
  while (!rest.empty()) names_.emplace_back(take_word(rest));
}

bool transport_list::has(std::string_view name) const {
  return std::any_of(names_.begin(), names_.end(), [&](std::string_view each) {
    if (each.starts_with('\\')) each.remove_prefix(1);
    return each == name;
  });
}

void transport_list::add(std::string_view name) {
  if (!has(name)) names_.emplace_back(name);
}

bool transport_list::allows(std::string_view transport) const {
  const bool named = std::any_of(names_.begin(), names_.end(), [&](std::string_view each) {
    return each.starts_with('\\') ? each.substr(1) == transport : stands_for(each, transport);
  });
  return named != negated_;
}

bool transport_list::remove(std::string_view name) {
  const auto is_it = [name](const std::string& each) { return each == name; };
  if (negated_ || !has(name) || std::all_of(names_.begin(), names_.end(), is_it)) return false;
  return std::erase_if(names_, is_it) != 0;
}

std::string transport_list::kept_to_the_user(version_number version) const {
  transport_list made("");
  made.negated_ = negated_ || (names_.size() == 1 && has("all"));
  if (!made.negated_) {
    for (const std::string& name : names_) {
      if (!is_group(name)) made.names_.push_back(name);
    }
    for (const std::string& name : names_) {
      if (!is_group(name)) continue;
      for (const std::string& member : members_of(name)) made.add(member);
    }
    return made.text();
  }
  for (const std::string& name : names_) {
    if (name != "all") made.names_.push_back(name);
  }
  if (std::any_of(names_.begin(), names_.end(), is_group)) return made.text();
  made.add("sysv");
  // UCX before 1.18 warns of what it is to leave out and has not.
  const bool silent = version >= version_number{1, 18, 0};
  if (silent || ::access("/dev/xpmem", F_OK) == 0) made.add("xpmem");
  return made.text();
}

std::string transport_list::text() const {
  std::string list;
  for (const std::string& name : names_) list += (list.empty() ? "" : ",") + name;
  return negated_ ? '^' + list : list;
}

}  // namespace ucx::detail
