// The rights that a server's rules give one client: docs/reference/rules.md.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "server/rule_list.hpp"
#include "ucx/access.hpp"
#include "ucx/access_rules.hpp"
#include "ucx/entry.hpp"
#include "ucx/peer_identity.hpp"

namespace ucx::detail {

/// Returns the rights that an open with this access needs.
access_right right_of(access wanted) noexcept;

/// A name exists for a client that may list, read or write it. Without rules all is allowed. A
/// client that acts for others may do what it and each of them may. Under the worker's lock.
class session_rights {
 public:
  session_rights(std::shared_ptr<const peer_identity> who, std::shared_ptr<const rule_list> rules);

  void set(std::shared_ptr<const rule_list> rules) noexcept { rules_ = std::move(rules); }
  const peer_identity& who() const noexcept { return *who_; }
  const std::shared_ptr<const peer_identity>& identity() const noexcept { return who_; }

  /// The client acts for these from here on.
  void act_for(std::vector<std::shared_ptr<const peer_identity>> others) noexcept {
    others_ = std::move(others);
  }
  /// Returns those for which the client acts, that have another identity, for people; else empty.
  std::string principals() const;
  /// Returns whether the others have a right, without which the client may not act for them.
  bool others_have(access_right wanted, std::string_view name) const noexcept;

  bool allow(access_right wanted, std::string_view name) const noexcept {
    return !rules_ ||
           allow_all([&](const peer_identity& each) { return rules_->allows(each, wanted, name); });
  }
  bool show(std::string_view name) const noexcept;
  /// Returns whether a directory exists for the client: it has that name, or may have one below.
  bool show_directory(std::string_view name) const noexcept;
  /// Returns whether it is listed in its directory.
  bool list(const entry& described) const noexcept;

  // Each returns no error where it is allowed; no_such_name where there is no such name for the
  // client, else permission_denied.
  std::error_code check(access_right wanted, std::string_view name) const noexcept;
  /// Of what a client makes or replaces. `may_replace`: it may be there.
  std::error_code check_create(std::string_view name, bool may_replace) const noexcept;
  /// Returns whether all that is below two directories may move from one to the other.
  bool allow_move_below(std::string_view from, std::string_view to) const noexcept;
  /// A client that may read and remove a file, and create another one, may rename it.
  std::error_code check_rename(std::string_view from, std::string_view to,
                               bool may_replace) const noexcept;

  /// Leaves of what is granted what the client may use, for people that read a list.
  void limit(entry& described) const noexcept;

 private:
  /// Returns whether `ask` says yes of the client, and of each for which it acts.
  template <class Ask>
  bool allow_all(const Ask& ask) const noexcept {
    return ask(*who_) && std::all_of(others_.begin(), others_.end(),
                                     [&ask](const auto& each) { return ask(*each); });
  }
  template <class Ask>
  bool ask_below(std::string_view name, Ask ask) const noexcept;
  bool may_list_below(std::string_view name) const noexcept;

  const std::shared_ptr<const peer_identity> who_;
  std::vector<std::shared_ptr<const peer_identity>> others_;  // for which it acts; none is null
  std::shared_ptr<const rule_list> rules_;
};

}  // namespace ucx::detail
