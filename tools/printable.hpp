// Text that came from elsewhere, for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace ucx::tool {

/// Returns `text` with control characters, and bytes that are no UTF-8, as "\x1b": a peer's name
/// must neither break a line nor command the terminal. The rest stays as it is.
std::string printable(std::string_view text);

}  // namespace ucx::tool
