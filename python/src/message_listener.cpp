#include "message_listener.hpp"

#include <algorithm>
#include <utility>

#include <nanobind/stl/string.h>

#include "waiting.hpp"
#include "without_gil.hpp"

namespace ucxio_python {

namespace nb = nanobind;

namespace {

/// Returns the IPv4 addresses of an interface of this machine.
nb::list interface_addresses(const std::string& name) {
  nb::list found;
  for (const ucx::socket_address& each : ucx::interface_addresses(name)) {
    if (each.is_v4()) found.append(nb::str(each.host().c_str()));
  }
  return found;
}

}  // namespace

void message_listener_object::state::add(std::shared_ptr<message_connection> made) {
  const std::lock_guard guard(lock);
  if (is_closed) return;  // `made` goes behind the guard
  pending.push_back(std::move(made));
}

void message_listener_object::state::close() {
  std::vector<std::shared_ptr<message_connection>> begun;
  std::vector<std::shared_ptr<message_connection>> untaken;
  const std::lock_guard guard(lock);
  is_closed = true;
  begun.swap(pending);
  untaken.swap(standing);
}

void message_listener_object::state::decide(const message_connection* made, bool stands) {
  std::shared_ptr<message_connection> found;
  {
    const std::lock_guard guard(lock);
    const auto at = std::find_if(pending.begin(), pending.end(),
                                 [&](const auto& each) { return each.get() == made; });
    if (at == pending.end()) return;
    found = std::move(*at);
    pending.erase(at);
    if (stands) standing.push_back(std::move(found));
  }
  if (stands) over->loop()->ended()->add(number);
}

void message_listener_object::accept(const std::shared_ptr<state>& at,
                                     ucx::connection_request asked) {
  // The decision comes from another handler, after this one.
  const auto itself = std::make_shared<const message_connection*>(nullptr);
  const auto decide = [weak = std::weak_ptr(at), itself](bool stands) {
    if (const auto here = weak.lock()) here->decide(*itself, stands);
  };
  std::shared_ptr<message_connection> made =
      message_connection::accept(at->over, std::move(asked), decide);
  *itself = made.get();
  at->add(std::move(made));
}

message_listener_object message_listener_object::listen(const std::shared_ptr<message_worker>& over,
                                                        const ucx::socket_address& where) {
  const without_gil free;
  auto made = std::make_shared<state>(over);
  ucx::listener_options options;
  options.on_request = [weak = std::weak_ptr(made)](ucx::connection_request asked) {
    try {
      if (const auto here = weak.lock()) accept(here, std::move(asked));
    } catch (const ucx::error&) {  // the peer is gone already
    }
  };
  made->listening.emplace(over->worker(), where, std::move(options));
  made->address = made->listening->address();
  return message_listener_object(std::move(made));
}

message_listener_object::~message_listener_object() {
  if (!state_) return;
  const without_gil free;
  state_.reset();
}

nb::list message_listener_object::take_peers() {
  std::vector<std::shared_ptr<message_connection>> found;
  {
    const std::lock_guard guard(state_->lock);
    found.swap(state_->standing);
  }
  nb::list peers;
  for (std::shared_ptr<message_connection>& each : found) {
    peers.append(message_endpoint_object(std::move(each)));
  }
  return peers;
}

void message_listener_object::close() {
  if (ucx::is_forked_child()) return;
  const without_gil free;
  if (state_->listening) state_->listening->close();
  state_->close();
  state_->over->loop()->wake();
}

void add_message_listener(nb::module_& module) {
  using object = message_listener_object;
  nb::class_<object>(module, "MessageListener")
      .def_prop_ro("number", &object::number)
      .def_prop_ro("host", &object::host)
      .def_prop_ro("port", &object::port)
      .def("take_peers", &object::take_peers)
      .def("close", &object::close);
  module.def("interface_addresses", &interface_addresses, nb::arg("name"));
}

}  // namespace ucxio_python
