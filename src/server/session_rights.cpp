#include "server/session_rights.hpp"

#include <new>
#include <utility>

#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

constexpr access_right showing[] = {access_right::list, access_right::read, access_right::write};

}  // namespace

access_right right_of(access wanted) noexcept {
  const access_right read =
      includes(wanted, access::read) ? access_right::read : access_right::none;
  return includes(wanted, access::write) ? read | access_right::write : read;
}

session_rights::session_rights(std::shared_ptr<const peer_identity> who,
                               std::shared_ptr<const rule_list> rules)
    : who_(who ? std::move(who) : std::make_shared<const peer_identity>()),
      rules_(std::move(rules)) {}

std::string session_rights::principals() const {
  const std::string own = to_string(*who_);
  std::string all;
  for (const auto& each : others_) {
    const std::string told = to_string(*each);
    if (told == own) continue;
    if (!all.empty()) all += ", ";
    all += told;
  }
  return all.empty() && !others_.empty() ? own : all;
}

bool session_rights::others_have(access_right wanted, std::string_view name) const noexcept {
  return !rules_ || std::all_of(others_.begin(), others_.end(), [&](const auto& each) {
    return rules_->allows(*each, wanted, name);
  });
}

bool session_rights::show(std::string_view name) const noexcept {
  if (!rules_) return true;
  for (const access_right each : showing) {
    if (allow(each, name)) return true;
  }
  return false;
}

template <class Ask>
bool session_rights::ask_below(std::string_view name, Ask ask) const noexcept {
  try {
    std::string directory(name);
    if (!directory.empty()) directory += '/';
    return ask(directory);
  } catch (const std::bad_alloc&) {
    return false;
  }
}

bool session_rights::may_list_below(std::string_view name) const noexcept {
  return ask_below(name, [this](const std::string& directory) {
    return allow_all([&](const peer_identity& each) {
      return rules_->may_allow_below(each, access_right::list, directory);
    });
  });
}

bool session_rights::allow_move_below(std::string_view from, std::string_view to) const noexcept {
  if (!rules_) return true;
  const auto all = [this](access_right wanted) {
    return [this, wanted](const std::string& directory) {
      return allow_all([&](const peer_identity& each) {
        return rules_->allows_all_below(each, wanted, directory);
      });
    };
  };
  return ask_below(from, all(access_right::read | access_right::remove)) &&
         ask_below(to, all(access_right::create | access_right::write));
}

bool session_rights::show_directory(std::string_view name) const noexcept {
  return show(name) || may_list_below(name);
}

bool session_rights::list(const entry& described) const noexcept {
  if (allow(access_right::list, described.name)) return true;
  return described.type == entry_type::directory && may_list_below(described.name);
}

std::error_code session_rights::check(access_right wanted, std::string_view name) const noexcept {
  if (allow(wanted, name)) return {};
  return show(name) ? errc::permission_denied : errc::no_such_name;
}

std::error_code session_rights::check_create(std::string_view name,
                                             bool may_replace) const noexcept {
  return check(may_replace ? access_right::create | access_right::write : access_right::create,
               name);
}

std::error_code session_rights::check_rename(std::string_view from, std::string_view to,
                                             bool may_replace) const noexcept {
  const std::error_code source = check(access_right::read | access_right::remove, from);
  return source ? source : check_create(to, may_replace);
}

void session_rights::limit(entry& described) const noexcept {
  if (!rules_ || described.type == entry_type::directory) return;
  const bool may_read = allow(access_right::read, described.name);
  const bool may_write = allow(access_right::write, described.name);
  if (may_read && !may_write && includes(described.granted, access::read)) {
    described.granted = access::read;
  }
  if (may_write && !may_read && includes(described.granted, access::write)) {
    described.granted = access::write;
  }
}

}  // namespace ucx::detail
