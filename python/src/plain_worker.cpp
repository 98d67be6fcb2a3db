#include "plain_worker.hpp"

#include <chrono>
#include <span>
#include <utility>
#include <vector>

#include <nanobind/stl/string.h>
#include <ucx/endpoint_options.hpp>
#include <ucx/peer_address.hpp>
#include <ucx/socket_address.hpp>

#include "borrowed.hpp"
#include "loop_operation.hpp"
#include "plain_endpoint.hpp"
#include "waiting.hpp"
#include "without_gil.hpp"

namespace ucxio_python {
namespace {

namespace nb = nanobind;

/// An operation waits for as long as the program drives it: some 30 years.
constexpr std::chrono::seconds unbounded{1'000'000'000};

/// Returns the form with a checksum of UCX's own bytes.
nb::bytes framed_address(nb::handle native) {
  borrowed lent;
  const std::span<const std::byte> bytes = lent.take_buffer(native, use::read);
  const std::vector<std::byte> made = ucx::worker_address::from_native(bytes).encode();
  return nb::bytes(made.data(), made.size());
}

/// Returns UCX's own bytes.
nb::bytes native_address(nb::handle framed) {
  borrowed lent;
  const auto found = ucx::worker_address::decode(lent.take_buffer(framed, use::read));
  return nb::bytes(found.native().data(), found.native().size());
}

}  // namespace

plain_worker_object::plain_worker_object(const plain_context_object& of, double connect_timeout) {
  refuse_forked_child();
  ucx::worker_options options;
  options.progress = ucx::progress_mode::external;
  // Garbage is collected on any thread.
  options.thread_mode = ucx::thread_mode::multi;
  options.connect_timeout = duration_of(connect_timeout);
  options.operation_timeout = unbounded;
  const without_gil free;
  of_ = std::make_shared<plain_worker>();
  of_->loop = std::make_shared<loop_worker>(ucx::worker(*of.shared(), options));
}

plain_worker_object::~plain_worker_object() {
  const without_gil free;
  of_.reset();
}

nb::tuple plain_worker_object::progress(std::size_t rounds) {
  refuse_forked_child();
  bool is_busy = false;
  {
    const without_gil free;
    for (std::size_t i = 0; i < rounds && of_->loop->worker().progress(); ++i) is_busy = true;
  }
  give_back();
  nb::list ended;
  for (const std::uint64_t number : of_->loop->ended()->take()) ended.append(number);
  return nb::make_tuple(ended, is_busy);
}

plain_endpoint_object plain_worker_object::connect_to(const std::string& host, std::uint16_t port) {
  refuse_forked_child();
  ucx::endpoint_options options;
  options.wait = ucx::connect_wait::none;
  const ucx::socket_address to(host, port);
  return plain_endpoint_object::connect(of_, to, std::move(options));
}

plain_endpoint_object plain_worker_object::connect_to_worker(nb::handle address) {
  refuse_forked_child();
  borrowed lent;
  const auto to = ucx::worker_address::decode(lent.take_buffer(address, use::read));
  return plain_endpoint_object::connect(of_, to, {});
}

message_worker_object* plain_worker_object::messages() {
  refuse_forked_child();
  const without_gil free;
  if (!of_->messages) {
    of_->messages = std::make_shared<message_worker>(of_->loop, of_->loop->worker().parent());
  }
  return new message_worker_object(of_->messages);
}

nb::object plain_worker_object::flush() {
  return finish_question(
      of_->loop, [of = of_] { return of->loop->worker().start_flush(); }, nothing);
}

void plain_worker_object::fence() {
  refuse_forked_child();
  const without_gil free;
  of_->loop->worker().fence();
}

nb::bytes plain_worker_object::address() const {
  refuse_forked_child();
  std::vector<std::byte> framed;
  {
    const without_gil free;
    framed = of_->loop->worker().address().encode();
  }
  return nb::bytes(framed.data(), framed.size());
}

int plain_worker_object::event_fd() const {
  refuse_forked_child();
  return of_->loop->worker().event_fd();
}

bool plain_worker_object::arm() {
  refuse_forked_child();
  const without_gil free;
  return of_->loop->worker().arm();
}

std::uintptr_t plain_worker_object::native_handle() const {
  refuse_forked_child();
  const without_gil free;
  return reinterpret_cast<std::uintptr_t>(of_->loop->worker().native_handle());
}

void add_plain_worker(nb::module_& module) {
  using object = plain_worker_object;
  nb::class_<object>(module, "PlainWorker")
      .def(nb::init<const plain_context_object&, double>(), nb::arg("context"),
           nb::arg("connect_timeout"))
      .def("progress", &object::progress, nb::arg("rounds"))
      .def("connect_to", &object::connect_to, nb::arg("host"), nb::arg("port"))
      .def("connect_to_worker", &object::connect_to_worker, nb::arg("address"))
      .def("messages", &object::messages)
      .def("flush", &object::flush)
      .def("fence", &object::fence)
      .def("address", &object::address)
      .def("arm", &object::arm)
      .def_prop_ro("event_fd", &object::event_fd)
      .def_prop_ro("handle", &object::native_handle);
  module.def("framed_address", &framed_address, nb::arg("native").none());
  module.def("native_address", &native_address, nb::arg("framed").none());
}

}  // namespace ucxio_python
