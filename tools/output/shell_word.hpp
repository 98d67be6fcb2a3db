// Texts that are pasted into a shell.
#pragma once

#include <string>
#include <string_view>

namespace ucx::tool {

/// Returns `text` in single quotes.
std::string in_quotes(std::string_view text);

/// Returns `text` as one word of a shell, in quotes only where it needs them.
std::string shell_word(std::string_view text);

}  // namespace ucx::tool
