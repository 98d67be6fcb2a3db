// Suggestions for an unknown key of a configuration.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ucx::detail {

/// Returns the known keys that look most like `key`, three at most, as the end of an error text;
/// nothing where none does.
std::string suggestion(std::string_view key, const std::vector<std::string>& known);

}  // namespace ucx::detail
