#include "ucp/asked_settings.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace ucx::detail {

const char* inherited(const char* variable) noexcept { return std::getenv(variable); }

failure refused_configuration(const std::string& text, std::error_code why) {
  return {why, "making a context: " + text};
}

void asked_settings::add(configuration_setting asked) { all_.push_back(std::move(asked)); }

const configuration_setting* asked_settings::find(std::string_view spelling) const noexcept {
  const auto found = std::find_if(all_.begin(), all_.end(), [&](const configuration_setting& each) {
    return std::find(each.spellings.begin(), each.spellings.end(), spelling) !=
           each.spellings.end();
  });
  return found == all_.end() ? nullptr : &*found;
}

configuration_setting* asked_settings::find(std::string_view spelling) noexcept {
  return const_cast<configuration_setting*>(std::as_const(*this).find(spelling));
}

std::string_view asked_settings::in_force(std::string_view spelling,
                                          const char* variable) const noexcept {
  const configuration_setting* const set = find(spelling);
  if (set != nullptr) return set->value;
  const char* const value = inherited(variable);
  return value != nullptr ? value : "all";
}

}  // namespace ucx::detail
