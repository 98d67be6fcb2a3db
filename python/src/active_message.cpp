#include "active_message.hpp"

#include <span>

#include "borrowed.hpp"
#include "loop_operation.hpp"
#include "waiting.hpp"
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
  refuse_forked_child();
  borrowed lent;
  const std::span<std::byte> into = lent.take_buffer(buffer, use::write);
  ucx::io_options options;
  options.cuda_stream = lent.cuda_stream();
  return begin(
      by_->over()->loop(), lent,
      [by = by_, came = came_, into, options] { return came->start_receive(into, options); },
      nothing, nullptr);
}

void add_active_message(nb::module_& module) {
  using object = active_message_object;
  nb::class_<object>(module, "ActiveMessage")
      .def_prop_ro("length", &object::length)
      .def_prop_ro("is_of_device", &object::is_of_device)
      .def("receive", &object::receive, nb::arg("buffer").none());
}

}  // namespace ucxio_python
