// The values of calls as objects of Python's.
#pragma once

#include <string>

#include <nanobind/nanobind.h>
#include <ucx/call_reader.hpp>
#include <ucx/call_writer.hpp>

#include "borrowed.hpp"
#include "call_form.hpp"

namespace ucxio_python {

/// Writes the arguments of a call. Buffers for windows are taken into `lent`.
/// Errors: TypeError (other types, or another number of arguments), ValueError (a number that the
/// type has not, another number of elements), those of `borrowed::take_buffer`.
void write_arguments(const call_form& form, nanobind::handle arguments, ucx::call_writer& to,
                     borrowed& lent);
/// Writes a result likewise.
void write_result(const call_form& form, nanobind::handle value, ucx::call_writer& to);

/// Returns the arguments as a tuple.
/// Errors: protocol_error; what a class of a record raises.
nanobind::object read_arguments(const call_form& form, ucx::call_reader from);
nanobind::object read_result(const call_form& form, ucx::call_reader from);

/// Copies values, without the GIL. `from` fails where they are of other types.
void copy_arguments(const call_types& types, ucx::call_reader& from, ucx::call_writer& to);

}  // namespace ucxio_python
