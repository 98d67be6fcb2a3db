// The lines of a server's rules: docs/reference/rules.md.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/name_pattern.hpp"
#include "base/result.hpp"
#include "ucx/access_rules.hpp"

namespace ucx::detail {

/// Whom a line concerns.
struct rule_subject {
  enum class kind { anybody, owner, token, certificate, user, group };

  bool includes(const peer_identity& who) const noexcept;

  kind what = kind::anybody;
  bool any = false;          ///< Every token, certificate, user or group.
  std::string name = {};     ///< Of a token or a certificate.
  std::uint32_t number = 0;  ///< Of a user or group.
};

struct rule_line {
  bool allows = true;
  rule_subject who = {};
  access_right rights = access_right::none;
  name_pattern names = {};
};

/// A value that does not change once it is made.
class rule_list {
 public:
  static constexpr std::size_t longest_text = std::size_t{1} << 20U;

  /// Returns the number of a user or group; nothing where there is none.
  using lookup = std::function<std::optional<std::uint32_t>(bool is_group, const std::string&)>;

  /// Errors: bad_configuration; the text begins with `source` and the number of the line.
  static result<rule_list> parse(std::string_view text, const std::string& source,
                                 const lookup& accounts);
  /// Adds a line of these words. Errors: bad_configuration.
  result<void> add(bool allows, std::string_view who, access_right rights, std::string_view names,
                   const lookup& accounts);

  /// Returns whether every right of `wanted` is allowed for the name.
  bool allows(const peer_identity& who, access_right wanted, std::string_view name) const noexcept;
  /// Returns whether the right may be allowed for a name below `directory`, which ends in '/' or is
  /// empty. Says yes where no name is there that is allowed.
  bool may_allow_below(const peer_identity& who, access_right wanted,
                       std::string_view directory) const noexcept;
  /// Returns whether every right of `wanted` is allowed for all names below `directory`.
  bool allows_all_below(const peer_identity& who, access_right wanted,
                        std::string_view directory) const noexcept;

 private:
  result<void> add_text(std::string_view line, const lookup& accounts);

  std::vector<rule_line> lines_;
};

}  // namespace ucx::detail
