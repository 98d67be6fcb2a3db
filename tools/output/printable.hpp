// Text that came from elsewhere, for a terminal, or to be pasted into a shell.
#pragma once

#include <string>
#include <string_view>

namespace ucx::tool {

/// Returns `text` with control characters, and bytes that are no UTF-8, as "\x1b": a peer's name
/// must neither break a line nor command the terminal. Characters that show nothing, or that change
/// the direction of others, become "\u202e": two names that look alike are the same. The rest stays
/// as it is.
std::string printable(std::string_view text);

/// Returns a JSON document in which the strings have the same characters as escapes: it says the
/// same to a program.
std::string with_visible_strings(std::string_view json);

/// Returns `text` in single quotes.
std::string in_quotes(std::string_view text);

/// Returns `text` as one word of a shell, in quotes only where it needs them.
std::string shell_word(std::string_view text);

}  // namespace ucx::tool
