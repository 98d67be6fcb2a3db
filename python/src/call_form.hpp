// A function that is called, or served, by its name and signature, for Python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>
#include <ucx/call_function.hpp>

namespace ucxio_python {

/// A type of a signature: `docs/reference/calls.md`, "Signatures".
struct call_type {
  enum class kind : std::uint8_t {
    boolean,
    integer,
    f32,
    f64,
    text,
    bytes,
    nil,
    list,
    array,
    optional,
    tuple,
    map,
    record,
    window,
  };
  kind what = kind::nil;
  std::string word;  ///< As in the signature: "i32", "list", the name of a record.
  std::vector<call_type> parts = {};
  std::vector<std::string> fields = {};  ///< Of a record.
  std::size_t count = 0;                 ///< Of an array.
  bool is_written = false;               ///< A window that the callee may write.
  bool is_read = false;                  ///< A window that the callee may read.
};

struct call_types {
  std::vector<call_type> arguments;
  call_type result;
};

/// Returns the types of a signature.
call_types types_of(const ucx::call_signature& signature);

/// A name, a signature, and the classes that records become.
class call_form {
 public:
  /// Makes one. `records` has classes by the names of the records; others become dicts.
  /// Errors: bad_name, invalid_argument, not_supported.
  call_form(const std::string& name, const std::string& signature,
            std::map<std::string, nanobind::object> records);

  std::string name() const { return called_.name(); }
  std::string signature() const { return called_.signature().text(); }
  const ucx::call_function& called() const noexcept { return called_; }
  const std::shared_ptr<const call_types>& types() const noexcept { return types_; }
  const std::map<std::string, nanobind::object>& records() const noexcept { return records_; }

 private:
  ucx::call_function called_;
  std::shared_ptr<const call_types> types_;
  std::map<std::string, nanobind::object> records_;
};

void add_call_form(nanobind::module_& module);

}  // namespace ucxio_python
