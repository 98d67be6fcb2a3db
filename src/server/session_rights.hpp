// The rights that a server's rules give one client: docs/reference/rules.md.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "server/rule_list.hpp"
#include "ucx/access.hpp"
#include "ucx/access_rules.hpp"
#include "ucx/entry.hpp"
#include "ucx/peer_identity.hpp"

namespace ucx::detail {

/// Returns the rights that an open with this access needs.
access_right right_of(access wanted) noexcept;

/// A name exists for a client that may list, read or write it. Without rules all is allowed. Under
/// the worker's lock.
class session_rights {
 public:
  session_rights(std::shared_ptr<const peer_identity> who, std::shared_ptr<const rule_list> rules);

  void set(std::shared_ptr<const rule_list> rules) noexcept { rules_ = std::move(rules); }
  const peer_identity& who() const noexcept { return *who_; }

  bool allow(access_right wanted, std::string_view name) const noexcept {
    return !rules_ || rules_->allows(*who_, wanted, name);
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
  template <class Ask>
  bool ask_below(std::string_view name, Ask ask) const noexcept;
  bool may_list_below(std::string_view name) const noexcept;

  const std::shared_ptr<const peer_identity> who_;
  std::shared_ptr<const rule_list> rules_;
};

}  // namespace ucx::detail
