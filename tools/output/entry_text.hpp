// A published name as people and programs read it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "ucx/access.hpp"
#include "ucx/entry.hpp"
#include "ucx/url.hpp"

namespace ucx::tool {

/// Returns "read", "write" or "read_write".
std::string_view name_of(access granted) noexcept;
/// Returns "r-", "-w" or "rw".
std::string_view short_form(access granted) noexcept;

/// Returns the kind of the memory, and the device if it is one's: "host", "cuda:1".
std::string memory_text(const entry& described);

/// Returns `described` as an object; its members are part of the tool's interface
/// (`docs/reference/tool.md`).
nlohmann::ordered_json to_json(const entry& described, const url& server);

/// Returns the text of `value` as a document, with a newline.
std::string to_document(const nlohmann::ordered_json& value);

}  // namespace ucx::tool
