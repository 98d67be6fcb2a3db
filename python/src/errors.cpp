#include "errors.hpp"

#include <cerrno>
#include <exception>
#include <string>
#include <system_error>

#include <ucx/error.hpp>

#include "enumerators.hpp"

#include <nanobind/stl/string.h>

namespace ucxio_python {
namespace {

namespace nb = nanobind;

/// Returns the system's number that comes nearest. It is never 0.
int errno_of(std::error_code why) noexcept {
  const std::error_condition portable = why.default_error_condition();
  if (portable.category() == std::generic_category() && portable.value() != 0)
    return portable.value();
  if (why.category() != ucx::error_category()) return EIO;
  switch (static_cast<ucx::errc>(why.value())) {
    case ucx::errc::stale_region:
    case ucx::errc::revoked:
    case ucx::errc::content_changed:
      return ESTALE;
    case ucx::errc::host_not_found:
      return EHOSTUNREACH;
    default:
      return EIO;
  }
}

std::string code_of(std::error_code why) {
  if (why.category() != ucx::error_category()) return "io_error";
  return std::string(to_string(static_cast<ucx::errc>(why.value())));
}

/// Returns the code of what a called function threw: the name of an error of the library, or a
/// number of the system.
nb::object cause_of(std::error_code cause) {
  if (!cause) return nb::none();
  if (cause.category() == ucx::error_category()) return nb::cast(code_of(cause));
  return nb::cast(cause.value());
}

void set(std::error_code why, const char* text, std::optional<int> status, std::error_code cause) {
  const nb::object made =
      nb::module_::import_("ucxio.errors")
          .attr("_error_of")(code_of(why), errno_of(why), text,
                             status ? nb::cast(*status) : nb::none(), cause_of(cause));
  PyErr_SetObject(made.type().ptr(), made.ptr());
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    try {
      std::rethrow_exception(thrown);
    } catch (const ucx::error& failed) {
      set(failed.code(), failed.what(), failed.ucx_status(), failed.cause());
    } catch (const std::system_error& failed) {
      set(failed.code(), failed.what(), std::nullopt, {});
    }
  } catch (nb::python_error& failed) {  // the module could not be used
    failed.restore();
  }
}

/// Returns the names of all errors of the library, in their order.
nb::list names() {
  nb::list found;
  for (int value = 1;; ++value) {
    const std::string_view name = to_string(static_cast<ucx::errc>(value));
    if (name == "unknown") return found;
    found.append(nb::str(name.data(), name.size()));
  }
}

}  // namespace

nb::object error_of(std::error_code why, const std::string& text) {
  return nb::module_::import_("ucxio.errors")
      .attr("_error_of")(code_of(why), errno_of(why), text, nb::none(), nb::none());
}

void add_errors(nb::module_& module) {
  nb::register_exception_translator(&translate);
  module.def("error_codes", &names);
  module.def(
      "errno_of",
      [](const std::string& code) {
        return errno_of(make_error_code(value_of<ucx::errc>(code, "error")));
      },
      nb::arg("code"));
}

}  // namespace ucxio_python
