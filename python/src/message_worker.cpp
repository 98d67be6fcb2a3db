#include "message_worker.hpp"

#include <exception>
#include <span>
#include <system_error>

#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <ucx/error.hpp>
#include <ucx/peer_address.hpp>

#include "borrowed.hpp"
#include "loop_operation.hpp"
#include "message_endpoint.hpp"
#include "message_listener.hpp"
#include "message_transfers.hpp"
#include "waiting.hpp"
#include "without_gil.hpp"

namespace ucxio_python {
namespace {

namespace nb = nanobind;

/// A receive waits for as long as its task does: some 30 years.
constexpr std::chrono::seconds no_deadline{1'000'000'000};

std::shared_ptr<message_worker> make_worker(const std::map<std::string, std::string>& configuration,
                                            bool environment_wins, double connect_timeout,
                                            double peer_timeout, double close_timeout) {
  refuse_forked_child();
  ucx::context_options context;
  context.configuration = configuration;
  if (environment_wins) context.configuration_precedence = ucx::precedence::environment;
  ucx::worker_options worker;
  worker.progress = ucx::progress_mode::external;
  // Garbage is collected on any thread.
  worker.thread_mode = ucx::thread_mode::multi;
  worker.connect_timeout = duration_of(connect_timeout);
  worker.operation_timeout = no_deadline;
  worker.heartbeat_timeout = duration_of(peer_timeout);
  worker.close_timeout = duration_of(close_timeout);
  const without_gil free;
  ucx::context made(context);
  ucx::worker drives(made, worker);
  return std::make_shared<message_worker>(std::make_shared<loop_worker>(std::move(drives)),
                                          std::move(made));
}

}  // namespace

ucx::message_name active_message_name() noexcept { return {"ucxio.ucp", 1}; }

message_worker::message_worker(std::shared_ptr<loop_worker> loop, ucx::context of)
    : loop_(std::move(loop)), context_(std::move(of)) {
  const auto put = [inbox = std::weak_ptr(inbox_)](ucx::message came) {
    if (const auto here = inbox.lock()) here->put(std::move(came));
  };
  worker().on_message(active_message_name(), put);
}

void message_worker::close_later(ucx::endpoint gone) noexcept {
  inbox_->remove(gone.id());
  closing_.close(std::move(gone));
  loop_->wake();
}

void message_worker::settle(std::chrono::nanoseconds limit) noexcept {
  std::vector<ucx::request> closing = closing_.take();
  try {
    ucx::io_options options;
    options.timeout = limit;
    closing.push_back(worker().start_flush(options));
    ucx::wait_all(closing, limit);
  } catch (const std::exception&) {  // they go as they are
  }
}

message_worker_object::message_worker_object(std::shared_ptr<message_worker> made)
    : loop_worker_object(made->loop()), of_(std::move(made)) {}

message_worker_object::message_worker_object(
    const std::map<std::string, std::string>& configuration, bool environment_wins,
    double connect_timeout, double peer_timeout, double close_timeout)
    : message_worker_object(make_worker(configuration, environment_wins, connect_timeout,
                                        peer_timeout, close_timeout)) {}

message_worker_object::~message_worker_object() {
  const without_gil free;
  of_.reset();
}

message_listener_object message_worker_object::listen(const std::string& host, std::uint16_t port) {
  refuse_forked_child();
  return message_listener_object::listen(of_, ucx::socket_address(host, port));
}

message_endpoint_object message_worker_object::connect_to(const std::string& host,
                                                          std::uint16_t port) {
  refuse_forked_child();
  ucx::endpoint_options options;
  options.wait = ucx::connect_wait::none;
  const ucx::socket_address to(host, port);
  const without_gil free;
  return message_endpoint_object(message_connection::connect(of_, to, std::move(options)));
}

message_endpoint_object message_worker_object::connect_to_worker(nb::handle address, bool watched) {
  refuse_forked_child();
  ucx::endpoint_options options;
  if (!watched) options.error_handling = ucx::error_handling_mode::none;
  borrowed lent;
  const std::span<const std::byte> bytes = lent.take_buffer(address, use::read);
  const ucx::worker_address to = ucx::worker_address::decode(bytes);
  const without_gil free;
  return message_endpoint_object(message_connection::connect(of_, to, std::move(options)));
}

nb::object message_worker_object::receive(nb::handle buffer, std::uint64_t tag) {
  return begin_receive(
      of_->loop(), buffer,
      [of = of_, tag](auto into, const auto& options) {
        return of->worker().start_receive(tag, into, options);
      },
      lengths_of);
}

nb::object message_worker_object::receive_parts(std::uint64_t tag) {
  return begin_receive_parts(of_->loop(), [of = of_, tag](const ucx::receive_target& into) {
    return of->worker().start_receive(tag, into);
  });
}

bool message_worker_object::probe(std::uint64_t tag) const {
  refuse_forked_child();
  const without_gil free;
  return of_->worker().probe(tag).has_value();
}

nb::object message_worker_object::flush() {
  return finish_question(
      of_->loop(), [of = of_] { return of->worker().start_flush(); }, nothing);
}

void message_worker_object::fence() {
  refuse_forked_child();
  const without_gil free;
  of_->worker().fence();
}

void message_worker_object::settle(double limit) {
  if (ucx::is_forked_child()) return;
  const std::chrono::nanoseconds within = duration_of(limit);
  const without_gil free;
  of_->settle(within);
}

nb::bytes message_worker_object::address() const {
  refuse_forked_child();
  std::vector<std::byte> framed;
  {
    const without_gil free;
    framed = of_->worker().address().encode();
  }
  return nb::bytes(framed.data(), framed.size());
}

std::vector<std::pair<std::string, std::string>> message_worker_object::configuration() const {
  refuse_forked_child();
  const without_gil free;
  return of_->context().configuration();
}

std::vector<std::string> message_worker_object::transports() const {
  refuse_forked_child();
  const without_gil free;
  return of_->context().transports();
}

std::string message_worker_object::description() const {
  refuse_forked_child();
  const without_gil free;
  return of_->context().description();
}

bool message_worker_object::supports_cuda() const {
  refuse_forked_child();
  const without_gil free;
  return of_->context().attributes().supports_cuda();
}

std::uintptr_t message_worker_object::native_handle() const {
  refuse_forked_child();
  const without_gil free;
  return reinterpret_cast<std::uintptr_t>(of_->worker().native_handle());
}

void add_message_worker(nb::module_& module) {
  using object = message_worker_object;
  nb::class_<object, loop_worker_object>(module, "MessageWorker")
      .def(nb::init<const std::map<std::string, std::string>&, bool, double, double, double>(),
           nb::arg("configuration"), nb::arg("environment_wins"), nb::arg("connect_timeout"),
           nb::arg("peer_timeout"), nb::arg("close_timeout"))
      .def("listen", &object::listen, nb::arg("host"), nb::arg("port"))
      .def("connect_to", &object::connect_to, nb::arg("host"), nb::arg("port"))
      .def("connect_to_worker", &object::connect_to_worker, nb::arg("address"), nb::arg("watched"))
      .def("receive", &object::receive, nb::arg("buffer").none(), nb::arg("tag"))
      .def("receive_parts", &object::receive_parts, nb::arg("tag"))
      .def("probe", &object::probe, nb::arg("tag"))
      .def("flush", &object::flush)
      .def("fence", &object::fence)
      .def("settle", &object::settle, nb::arg("limit"))
      .def("address", &object::address)
      .def("configuration", &object::configuration)
      .def("transports", &object::transports)
      .def("description", &object::description)
      .def_prop_ro("supports_cuda", &object::supports_cuda)
      .def_prop_ro("handle", &object::native_handle);
}

}  // namespace ucxio_python
