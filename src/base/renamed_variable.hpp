// A variable of the environment that has a new name. The old one counts for one version.
#pragma once

#include <cstdlib>

namespace ucx::detail {

struct renamed_variable {
  /// Reads `now`; where that is unset or empty, `before`.
  renamed_variable(const char* now, const char* before) noexcept : name(now) {
    if (take(now) || !take(before)) return;
    name = before;
  }

  const char* name;  ///< The one that is set; `now` where neither is.
  const char* value = "";

 private:
  bool take(const char* variable) noexcept {
    const char* const found = std::getenv(variable);
    if (found == nullptr || *found == '\0') return false;
    value = found;
    return true;
  }
};

}  // namespace ucx::detail
