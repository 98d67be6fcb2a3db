#include "call_values.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include <ucx/access.hpp>

namespace ucxio_python {
namespace {

namespace nb = nanobind;
using kind = call_type::kind;

struct integer_range {
  std::int64_t least;
  std::uint64_t most;
};

/// Of "i8" to "u64".
integer_range range_of(const std::string& word) {
  const unsigned bits = word.back() == '8'     ? 8U
                        : word.ends_with("16") ? 16U
                        : word.ends_with("32") ? 32U
                                               : 64U;
  const std::uint64_t all = std::numeric_limits<std::uint64_t>::max() >> (64U - bits);
  if (word.front() == 'u') return {0, all};
  return {-static_cast<std::int64_t>(all / 2) - 1, all / 2};
}

std::string class_of(nb::handle value) { return nb::str(value.type().attr("__name__")).c_str(); }

/// Writes values of Python's. `where_` says which argument, for the text of an error.
class value_writer {
 public:
  value_writer(std::string where, ucx::call_writer& to, borrowed& lent)
      : where_(std::move(where)), to_(to), lent_(lent) {}

  void write(const call_type& type, nb::handle value) {
    switch (type.what) {
      case kind::boolean:
        if (!PyBool_Check(value.ptr())) refuse(type, value);
        to_.boolean(value.is(Py_True));
        return;
      case kind::integer:
        return write_integer(type, value);
      case kind::f32:
      case kind::f64:
        return write_float(type, value);
      case kind::text:
        return write_text(type, value);
      case kind::bytes:
        return write_bytes(type, value);
      case kind::nil:
        if (!value.is_none()) refuse(type, value);
        to_.nil();
        return;
      case kind::list:
      case kind::array:
      case kind::tuple:
        return write_elements(type, value);
      case kind::optional:
        if (!value.is_none()) return write(type.parts[0], value);
        to_.nil();
        return;
      case kind::map:
        return write_map(type, value);
      case kind::record:
        return write_record(type, value);
      case kind::window:
        return write_window(type, value);
    }
  }

 private:
  [[noreturn]] void refuse(const call_type& type, nb::handle value) const {
    const std::string text = where_ + " needs " + type.word + ", not " + class_of(value);
    throw nb::type_error(text.c_str());
  }
  [[noreturn]] void refuse_value(const std::string& why) const {
    throw nb::value_error((where_ + ": " + why).c_str());
  }

  void write_integer(const call_type& type, nb::handle value) {
    if (PyIndex_Check(value.ptr()) == 0) refuse(type, value);
    const nb::object number = nb::steal(PyNumber_Index(value.ptr()));
    if (!number.is_valid()) throw nb::python_error();
    const integer_range range = range_of(type.word);
    int beyond = 0;
    const long long small = PyLong_AsLongLongAndOverflow(number.ptr(), &beyond);
    if (beyond == 0 && small >= range.least &&
        (small < 0 || static_cast<std::uint64_t>(small) <= range.most)) {
      to_.integer(small);
      return;
    }
    if (beyond > 0 && type.word == "u64") {
      const unsigned long long large = PyLong_AsUnsignedLongLong(number.ptr());
      if (PyErr_Occurred() == nullptr) {
        to_.unsigned_integer(large);
        return;
      }
      PyErr_Clear();
    }
    refuse_value("the number is outside " + type.word);
  }

  void write_float(const call_type& type, nb::handle value) {
    if (PyFloat_Check(value.ptr()) == 0 && !nb::hasattr(value, "__float__") &&
        PyIndex_Check(value.ptr()) == 0) {
      refuse(type, value);
    }
    const double number = PyFloat_AsDouble(value.ptr());
    if (number == -1.0 && PyErr_Occurred() != nullptr) throw nb::python_error();
    if (type.what == kind::f64) {
      to_.float64(number);
      return;
    }
    if (std::isfinite(number) && std::abs(number) > double{std::numeric_limits<float>::max()}) {
      refuse_value("the number is outside f32");
    }
    to_.float32(static_cast<float>(number));
  }

  void write_text(const call_type& type, nb::handle value) {
    if (PyUnicode_Check(value.ptr()) == 0) refuse(type, value);
    Py_ssize_t size = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
    if (text == nullptr) throw nb::python_error();
    to_.text({text, static_cast<std::size_t>(size)});
  }

  void write_bytes(const call_type& type, nb::handle value) {
    Py_buffer view;
    if (PyObject_CheckBuffer(value.ptr()) == 0) refuse(type, value);
    if (PyObject_GetBuffer(value.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
    const std::unique_ptr<Py_buffer, decltype(&PyBuffer_Release)> kept(&view, &PyBuffer_Release);
    to_.bytes({static_cast<const std::byte*>(view.buf), static_cast<std::size_t>(view.len)});
  }

  /// Returns the elements as they are now: what converts one may change the list.
  nb::object elements_of(const call_type& type, nb::handle value) const {
    const bool is_list = PySequence_Check(value.ptr()) != 0 && PyUnicode_Check(value.ptr()) == 0 &&
                         PyDict_Check(value.ptr()) == 0 && PyBytes_Check(value.ptr()) == 0 &&
                         PyByteArray_Check(value.ptr()) == 0;
    if (!is_list) refuse(type, value);
    nb::object made = nb::steal(PySequence_Tuple(value.ptr()));
    if (!made.is_valid()) throw nb::python_error();
    return made;
  }

  void write_elements(const call_type& type, nb::handle value) {
    const nb::object elements = elements_of(type, value);
    const std::size_t count = nb::len(elements);
    const std::size_t wanted = type.what == kind::array   ? type.count
                               : type.what == kind::tuple ? type.parts.size()
                                                          : count;
    if (count != wanted) {
      refuse_value(type.word + " has " + std::to_string(wanted) + " elements, not " +
                   std::to_string(count));
    }
    to_.list(count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto at = static_cast<Py_ssize_t>(i);
      write(type.what == kind::tuple ? type.parts[i] : type.parts[0],
            PyTuple_GetItem(elements.ptr(), at));
    }
  }

  void write_map(const call_type& type, nb::handle value) {
    if (!nb::hasattr(value, "items")) refuse(type, value);
    const nb::object items = nb::steal(PyMapping_Items(value.ptr()));
    if (!items.is_valid()) throw nb::python_error();
    to_.map(nb::len(items));
    for (nb::handle each : items) {
      const nb::tuple pair = nb::cast<nb::tuple>(each);
      write(type.parts[0], pair[0]);
      write(type.parts[1], pair[1]);
    }
  }

  /// Of an object with the fields as attributes, or of a dict.
  void write_record(const call_type& type, nb::handle value) {
    const bool is_dict = PyDict_Check(value.ptr()) != 0;
    if (is_dict && nb::len(value) != type.fields.size()) refuse(type, value);
    to_.list(type.fields.size());
    for (std::size_t i = 0; i < type.fields.size(); ++i) {
      const nb::str name(type.fields[i].c_str(), type.fields[i].size());
      nb::object each;
      if (is_dict) {
        each = nb::borrow(PyDict_GetItemWithError(value.ptr(), name.ptr()));
      } else {
        each = nb::getattr(value, name, nb::object());
      }
      if (!each.is_valid()) {
        const std::string text = where_ + " needs " + type.word + ", and " + class_of(value) +
                                 " has no \"" + type.fields[i] + "\"";
        throw nb::type_error(text.c_str());
      }
      write(type.parts[i], each);
    }
  }

  void write_window(const call_type& type, nb::handle value) {
    const std::span<std::byte> bytes =
        lent_.take_buffer(value, type.is_written ? use::write : use::read);
    to_.window(bytes, !type.is_written ? ucx::access::read
                      : type.is_read   ? ucx::access::read_write
                                       : ucx::access::write);
  }

  std::string where_;
  ucx::call_writer& to_;
  borrowed& lent_;
};

/// Reads values as objects of Python's. What is wrong shows when the reader finishes.
class value_reader {
 public:
  value_reader(const call_form& form, ucx::call_reader& from) : form_(form), from_(from) {}

  nb::object read(const call_type& type) {
    // About the memory that an object takes.
    if (!from_.claim(1, 48)) return nb::none();
    switch (type.what) {
      case kind::boolean:
        return nb::bool_(from_.boolean());
      case kind::integer:
        return read_integer(type);
      case kind::f32:
        return nb::float_(double{from_.float32()});
      case kind::f64:
        return nb::float_(from_.float64());
      case kind::text: {
        const std::string_view found = from_.text();
        return nb::str(found.data(), found.size());
      }
      case kind::bytes:
      case kind::window: {
        const std::span<const std::byte> found = from_.bytes();
        return nb::bytes(found.data(), found.size());
      }
      case kind::nil:
        if (!from_.nil()) from_.fail("a nil is expected");
        return nb::none();
      case kind::list:
      case kind::array:
        return read_list(type);
      case kind::tuple:
        return nb::tuple(read_parts(type, from_.list()));
      case kind::optional:
        return from_.nil() ? nb::none() : read(type.parts[0]);
      case kind::map:
        return read_map(type);
      case kind::record:
        return read_record(type);
    }
    return nb::none();
  }

  /// Reads one value for each of the parts.
  nb::list read_parts(const call_type& type, std::size_t count) {
    nb::list made;
    if (count != type.parts.size()) from_.fail("a list has another number of elements");
    for (std::size_t i = 0; i < count && from_.ok(); ++i) made.append(read(type.parts[i]));
    return made;
  }

 private:
  nb::object read_integer(const call_type& type) {
    const integer_range range = range_of(type.word);
    if (type.word.front() == 'u') return nb::int_(from_.unsigned_integer(range.most));
    return nb::int_(from_.integer(range.least, static_cast<std::int64_t>(range.most)));
  }

  nb::object read_list(const call_type& type) {
    nb::list made;
    const std::size_t count = from_.list();
    if (type.what == kind::array && count != type.count) {
      from_.fail("a list has another number of elements");
    }
    for (std::size_t i = 0; i < count && from_.ok(); ++i) made.append(read(type.parts[0]));
    return made;
  }

  nb::object read_map(const call_type& type) {
    nb::dict made;
    const std::size_t count = from_.map();
    for (std::size_t left = count; left > 0 && from_.ok(); --left) {
      const nb::object key = read(type.parts[0]);
      made[key] = read(type.parts[1]);
    }
    if (from_.ok() && nb::len(made) != count) from_.fail("a key stands twice in a map");
    return made;
  }

  nb::object read_record(const call_type& type) {
    const nb::list values = read_parts(type, from_.list());
    nb::dict fields;
    if (!from_.ok()) return fields;
    for (std::size_t i = 0; i < type.fields.size(); ++i) {
      fields[nb::str(type.fields[i].c_str(), type.fields[i].size())] = values[i];
    }
    const auto kept = form_.records().find(type.word);
    if (kept == form_.records().end()) return fields;
    nb::object made =
        nb::steal(PyObject_Call(kept->second.ptr(), nb::tuple(nb::list()).ptr(), fields.ptr()));
    if (!made.is_valid()) throw nb::python_error();
    return made;
  }

  const call_form& form_;
  ucx::call_reader& from_;
};

void copy_value(const call_type& type, ucx::call_reader& from, ucx::call_writer& to);

void copy_elements(const call_type& type, ucx::call_reader& from, ucx::call_writer& to) {
  const bool has_parts = type.what == kind::tuple || type.what == kind::record;
  const std::size_t count = from.list();
  if (has_parts && count != type.parts.size()) from.fail("a list has another number of elements");
  to.list(count);
  for (std::size_t i = 0; i < count && from.ok(); ++i) {
    copy_value(has_parts ? type.parts[i] : type.parts[0], from, to);
  }
}

void copy_value(const call_type& type, ucx::call_reader& from, ucx::call_writer& to) {
  switch (type.what) {
    case kind::boolean:
      to.boolean(from.boolean());
      return;
    case kind::integer:
      if (type.word.front() == 'u') {
        to.unsigned_integer(from.unsigned_integer());
      } else {
        to.integer(from.integer());
      }
      return;
    case kind::f32:
      to.float32(from.float32());
      return;
    case kind::f64:
      to.float64(from.float64());
      return;
    case kind::text:
      to.text(from.text());
      return;
    case kind::bytes:
    case kind::window:
      to.bytes(from.bytes());
      return;
    case kind::nil:
      if (!from.nil()) from.fail("a nil is expected");
      to.nil();
      return;
    case kind::optional:
      if (!from.nil()) return copy_value(type.parts[0], from, to);
      to.nil();
      return;
    case kind::map: {
      const std::size_t count = from.map();
      to.map(count);
      for (std::size_t i = 0; i < count && from.ok(); ++i) {
        copy_value(type.parts[0], from, to);
        copy_value(type.parts[1], from, to);
      }
      return;
    }
    case kind::list:
    case kind::array:
    case kind::tuple:
    case kind::record:
      return copy_elements(type, from, to);
  }
}

}  // namespace

void write_arguments(const call_form& form, nb::handle arguments, ucx::call_writer& to,
                     borrowed& lent) {
  const std::vector<call_type>& types = form.types()->arguments;
  if (nb::len(arguments) != types.size()) {
    const std::string text = form.name() + " takes " + std::to_string(types.size()) +
                             " arguments, not " + std::to_string(nb::len(arguments)) + ": " +
                             form.signature();
    throw nb::type_error(text.c_str());
  }
  std::size_t at = 0;
  for (nb::handle each : arguments) {
    const std::string where = "argument " + std::to_string(at + 1) + " of " + form.name();
    value_writer(where, to, lent).write(types[at++], each);
  }
}

void write_result(const call_form& form, nb::handle value, ucx::call_writer& to) {
  borrowed none;
  value_writer("the result of " + form.name(), to, none).write(form.types()->result, value);
}

nb::object read_arguments(const call_form& form, ucx::call_reader from) {
  nb::list made;
  value_reader reads(form, from);
  for (const call_type& each : form.types()->arguments) made.append(reads.read(each));
  from.finish();
  return nb::tuple(made);
}

nb::object read_result(const call_form& form, ucx::call_reader from) {
  nb::object made = value_reader(form, from).read(form.types()->result);
  from.finish();
  return made;
}

void copy_arguments(const call_types& types, ucx::call_reader& from, ucx::call_writer& to) {
  for (const call_type& each : types.arguments) copy_value(each, from, to);
  from.finish();
}

}  // namespace ucxio_python
