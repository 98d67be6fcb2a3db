// The types that the text of a signature names.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ucx/call_function.hpp"

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

}  // namespace ucx::tool
