// The library's enumerations by the names of their values.
#pragma once

#include <string>
#include <string_view>

#include <nanobind/nanobind.h>
#include <ucx/to_string.hpp>

namespace ucxio_python {

/// Returns the value whose name is `name`.
/// Errors: ValueError, which says what it is a name of.
template <class Enumeration>
Enumeration value_of(std::string_view name, const char* what) {
  for (int number = 0; number < 256; ++number) {
    const auto value = static_cast<Enumeration>(number);
    if (name == to_string(value)) return value;
  }
  throw nanobind::value_error(("\"" + std::string(name) + "\" is no " + what).c_str());
}

}  // namespace ucxio_python
