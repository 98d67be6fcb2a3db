// The settings of UCX's configuration that a context's options make, beside the environment's.
#pragma once

#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/result.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {

struct configuration_setting {
  std::string key;  ///< As the user says it.
  std::string value;
  std::vector<std::string> spellings;  ///< As this UCX says it.
  bool of_process = false;             ///< It counts for all contexts of the process.
};

class asked_settings {
 public:
  void add(configuration_setting asked);
  const std::vector<configuration_setting>& all() const noexcept { return all_; }

  const configuration_setting* find(std::string_view spelling) const noexcept;
  configuration_setting* find(std::string_view spelling) noexcept;
  /// Returns what the options, or else the environment, say; "all" where both say nothing.
  std::string_view in_force(std::string_view spelling, const char* variable) const noexcept;

 private:
  std::vector<configuration_setting> all_;
};

/// Returns the value of a variable of the environment; null where it is not set.
const char* inherited(const char* variable) noexcept;

/// Returns the failure of a context that could not be made so.
failure refused_configuration(const std::string& text,
                              std::error_code why = make_error_code(errc::bad_configuration));

}  // namespace ucx::detail
