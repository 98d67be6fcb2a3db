// Patterns of names: docs/reference/rules.md.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ucx::detail {

/// `*` stands for any letters but '/', `**` for any, `?` for one that is not '/'. A backslash takes
/// the meaning of what follows. Everything else stands for itself. Letters are bytes.
class name_pattern {
 public:
  /// Returns nothing where a backslash ends the text.
  static std::optional<name_pattern> parse(std::string_view text);

  bool matches(std::string_view name) const noexcept { return look(name, {}) == outcome::whole; }
  /// Returns whether it matches a name that begins with `directory`, which ends in '/' or is empty.
  bool matches_below(std::string_view directory) const noexcept {
    return look(directory, {}) != outcome::none;
  }
  /// Returns whether it matches every such name.
  bool matches_all_below(std::string_view directory) const noexcept {
    return ends_open_ && matches(directory);
  }

 private:
  enum class outcome { none, part, whole };
  enum class kind : unsigned char { letter, one, run, deep_run };
  struct step {
    kind what = kind::letter;
    char letter = 0;
  };
  /// Where a run was met last: it takes one letter more.
  struct retry {
    std::size_t step = 0;  // behind the run; 0: there is none
    std::size_t at = 0;
  };

  bool fits(const step& next, char letter) const noexcept;
  outcome look(std::string_view name, retry run) const noexcept;

  std::vector<step> steps_;
  bool ends_open_ = false;  // by `**`
};

}  // namespace ucx::detail
