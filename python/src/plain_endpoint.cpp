#include "plain_endpoint.hpp"

#include <span>
#include <system_error>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <ucx/remote_descriptor.hpp>

#include "borrowed.hpp"
#include "errors.hpp"
#include "keyed_region.hpp"
#include "loop_operation.hpp"
#include "waiting.hpp"
#include "without_gil.hpp"

namespace ucxio_python {

namespace nb = nanobind;

plain_connection::plain_connection(std::shared_ptr<plain_worker> over, const ucx::peer_address& to,
                                   ucx::endpoint_options options)
    : over_(std::move(over)) {
  options.plain_peer = true;
  peer_.emplace(over_->loop->worker(), to, std::move(options));
}

plain_connection::~plain_connection() {
  if (!peer_ || ucx::is_forked_child()) return;
  over_->closing.close(std::move(*peer_));
  over_->loop->wake();
}

plain_endpoint_object plain_endpoint_object::connect(std::shared_ptr<plain_worker> over,
                                                     const ucx::peer_address& to,
                                                     ucx::endpoint_options options) {
  const without_gil free;
  return plain_endpoint_object(
      std::make_shared<plain_connection>(std::move(over), to, std::move(options)));
}

plain_endpoint_object::~plain_endpoint_object() {
  if (!of_) return;
  const without_gil free;
  of_.reset();
}

keyed_region_object plain_endpoint_object::open(std::uint64_t address, std::uint64_t size,
                                                nb::handle key) {
  refuse_forked_child();
  borrowed lent;
  const auto described = ucx::remote_descriptor::of_key(
      address, size, lent.take_buffer(key, use::read), ucx::access::read_write);
  aside([of = of_] { of->peer().wait_connected(); });
  const without_gil free;
  return keyed_region_object(of_, described);
}

nb::object plain_endpoint_object::flush() {
  return finish_question(
      of_->loop(), [of = of_] { return of->peer().start_flush(); }, nothing);
}

void plain_endpoint_object::close() {
  ask([of = of_] { return of->peer().start_close(); });
}

std::string plain_endpoint_object::state() const {
  refuse_forked_child();
  const without_gil free;
  return std::string(to_string(of_->peer().state()));
}

nb::object plain_endpoint_object::failure() const {
  refuse_forked_child();
  std::error_code why;
  {
    const without_gil free;
    why = of_->peer().status();
  }
  if (!why) return nb::none();
  return error_of(why, why.message());
}

std::vector<std::string> plain_endpoint_object::transports() const {
  refuse_forked_child();
  const without_gil free;
  return of_->peer().transports();
}

std::uintptr_t plain_endpoint_object::native_handle() const {
  refuse_forked_child();
  const without_gil free;
  return reinterpret_cast<std::uintptr_t>(of_->peer().native_handle());
}

void add_plain_endpoint(nb::module_& module) {
  using object = plain_endpoint_object;
  nb::class_<object>(module, "PlainEndpoint")
      .def("open", &object::open, nb::arg("address"), nb::arg("size"), nb::arg("key").none())
      .def("flush", &object::flush)
      .def("close", &object::close)
      .def_prop_ro("state", &object::state)
      .def_prop_ro("failure", &object::failure)
      .def_prop_ro("transports", &object::transports)
      .def_prop_ro("handle", &object::native_handle);
}

}  // namespace ucxio_python
