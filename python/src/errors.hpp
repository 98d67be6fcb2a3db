// The library's errors as exceptions of Python's.
#pragma once

#include <string>
#include <system_error>

#include <nanobind/nanobind.h>

namespace ucxio_python {

/// Has every `ucx::error` raised as `ucxio.Error`.
void add_errors(nanobind::module_& module);

/// Returns the exception for one of many outcomes, which is not raised.
nanobind::object error_of(std::error_code why, const std::string& text);

}  // namespace ucxio_python
