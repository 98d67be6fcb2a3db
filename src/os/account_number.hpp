// The numbers of users and groups, by their names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ucx::detail {

/// Looks in the system's lists, which may be on another machine. Returns nothing where there is no
/// such account.
std::optional<std::uint32_t> number_of_account(bool is_group, const std::string& name);

}  // namespace ucx::detail
