// The description of a name, for Python.
#pragma once

#include <vector>

#include <nanobind/nanobind.h>
#include <ucx/entry.hpp>

namespace ucxio_python {

/// Returns the fields of `ucxio.Entry` as a tuple, in its order.
nanobind::tuple fields_of(const ucx::entry& of);
nanobind::list fields_of(const std::vector<ucx::entry>& all);

}  // namespace ucxio_python
