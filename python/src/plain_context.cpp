#include "plain_context.hpp"

#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "enumerators.hpp"
#include "waiting.hpp"
#include "without_gil.hpp"

namespace ucxio_python {

namespace nb = nanobind;

plain_context_object::plain_context_object(const std::map<std::string, std::string>& configuration,
                                           const std::vector<std::string>& transports,
                                           const std::vector<std::string>& features) {
  refuse_forked_child();
  ucx::context_options options;
  options.configuration = configuration;
  options.transports = transports;
  options.features = ucx::feature::none;
  for (const std::string& each : features) {
    options.features = options.features | value_of<ucx::feature>(each, "feature");
  }
  const without_gil free;
  of_ = std::make_shared<ucx::context>(options);
}

plain_context_object::~plain_context_object() {
  const without_gil free;
  of_.reset();
}

std::vector<std::pair<std::string, std::string>> plain_context_object::configuration() const {
  refuse_forked_child();
  const without_gil free;
  return of_->configuration();
}

std::string plain_context_object::description() const {
  refuse_forked_child();
  const without_gil free;
  return of_->description();
}

bool plain_context_object::supports_cuda() const {
  refuse_forked_child();
  const without_gil free;
  return of_->attributes().supports_cuda();
}

std::uintptr_t plain_context_object::native_handle() const {
  refuse_forked_child();
  return reinterpret_cast<std::uintptr_t>(of_->native_handle());
}

void add_plain_context(nb::module_& module) {
  using object = plain_context_object;
  nb::class_<object>(module, "PlainContext")
      .def(nb::init<const std::map<std::string, std::string>&, const std::vector<std::string>&,
                    const std::vector<std::string>&>(),
           nb::arg("configuration"), nb::arg("transports"), nb::arg("features"))
      .def("configuration", &object::configuration)
      .def("description", &object::description)
      .def_prop_ro("supports_cuda", &object::supports_cuda)
      .def_prop_ro("handle", &object::native_handle);
}

}  // namespace ucxio_python
