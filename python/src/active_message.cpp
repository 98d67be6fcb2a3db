#include "active_message.hpp"

#include "message_transfers.hpp"
#include "without_gil.hpp"

namespace ucxio_python {

namespace nb = nanobind;

active_message_object::~active_message_object() {
  if (!came_) return;
  const without_gil free;
  came_.reset();
  by_.reset();
}

bool active_message_object::is_of_device() const noexcept {
  const ucx::memory_kind of = came_->info().memory;
  return of == ucx::memory_kind::cuda || of == ucx::memory_kind::cuda_managed;
}

nb::object active_message_object::receive(nb::handle buffer) {
  return begin_receive(by_->over()->loop(), buffer,
                       [by = by_, came = came_](auto into, const auto& options) {
                         return came->start_receive(into, options);
                       });
}

void add_active_message(nb::module_& module) {
  using object = active_message_object;
  nb::class_<object>(module, "ActiveMessage")
      .def_prop_ro("length", &object::length)
      .def_prop_ro("is_of_device", &object::is_of_device)
      .def("receive", &object::receive, nb::arg("buffer").none());
}

}  // namespace ucxio_python
