// Which transports a value of UCX's key TLS lets a context use.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ucx/version.hpp"

namespace ucx::detail {

/// A list of transports as UCX reads it: "all", "tcp,self", "^ib". Names of groups count, too.
/// Blanks are left out, which UCX takes for parts of names.
class transport_list {
 public:
  explicit transport_list(std::string_view value);

  bool allows(std::string_view transport) const;

  /// Takes a name out of those that are listed one by one, unless nothing else is named. Returns
  /// whether it did.
  bool remove(std::string_view name);

  std::string text() const;

  /// Returns the list for UCX `version` without "sysv" and "xpmem", unless they are named one by
  /// one. UCX makes System V segments with mode 0660, so that every process of the group can write
  /// into its queues. By XPMEM it gives other processes of the user all memory of this one.
  std::string kept_to_the_user(version_number version) const;

 private:
  bool has(std::string_view name) const;
  void add(std::string_view name);

  std::vector<std::string> names_;
  bool negated_ = false;
};

}  // namespace ucx::detail
