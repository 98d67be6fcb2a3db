// The arguments and results of calls as text: docs/reference/tool.md, "call".
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "ucx/call_function.hpp"
#include "ucx/call_reader.hpp"
#include "ucx/call_writer.hpp"

namespace ucx::tool {

/// A type of a signature.
struct call_value_type {
  enum class kind {
    boolean,
    integer,
    f32,
    f64,
    text,
    bytes,
    list,
    array,
    optional,
    tuple,
    map,
    record,
    nil,
    other,  ///< Of a later version of the library: there is no text for it.
  };

  kind what = kind::nil;
  std::string word = {};                    ///< As the signature names it.
  std::size_t count = 0;                    ///< Elements of an array.
  std::vector<call_value_type> parts = {};  ///< The types within it; of a map two.
  std::vector<std::string> fields = {};     ///< The names of a record's parts.
};

struct call_types {
  std::vector<call_value_type> arguments = {};
  call_value_type result = {};
};
/// Returns the types of a signature.
call_types types_of(const call_signature& signature);

/// Writes an argument: a text as it stands, bytes by base64, all others by JSON. Errors: failure
/// with exit_code::usage.
void write_argument(const call_value_type& type, const std::string& argument, call_writer& to);

/// Reads a result as JSON. The reader fails where it is another one.
nlohmann::ordered_json read_result(const call_value_type& type, call_reader& from);

}  // namespace ucx::tool
