// The secret of a ticket: docs/reference/rules.md, "Agents".
#pragma once

#include <array>
#include <cstddef>

namespace ucx::detail {

using ticket_secret = std::array<std::byte, 16>;

}  // namespace ucx::detail
