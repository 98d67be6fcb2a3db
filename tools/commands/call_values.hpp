// The arguments and results of calls as text: docs/reference/tool.md, "call".
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "commands/call_types.hpp"
#include "ucx/call_reader.hpp"
#include "ucx/call_writer.hpp"

namespace ucx::tool {

/// Writes an argument: a text as it stands, bytes by base64, all others by JSON. Errors: failure
/// with exit_code::usage.
void write_argument(const call_value_type& type, const std::string& argument, call_writer& to);

/// Reads a result as JSON. The reader fails where it is another one.
nlohmann::ordered_json read_result(const call_value_type& type, call_reader& from);

}  // namespace ucx::tool
