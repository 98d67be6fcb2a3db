#include "message_endpoint.hpp"

#include <limits>
#include <span>
#include <system_error>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <ucx/error.hpp>
#include <ucx/payload.hpp>
#include <ucx/receive_target.hpp>

#include "active_message.hpp"
#include "borrowed.hpp"
#include "errors.hpp"
#include "foreign_memory.hpp"
#include "loop_operation.hpp"
#include "message_transfers.hpp"
#include "shared_view.hpp"
#include "waiting.hpp"
#include "without_gil.hpp"

namespace ucxio_python {
namespace {

namespace nb = nanobind;

/// The parts that a message had, which memoryviews keep.
struct received_parts {
  ucx::message_parts parts;
  lent_memory lent;
};

/// A message of any length, which a memoryview keeps.
struct received_whole {
  ucx::buffer made;
  lent_memory lent;
};

/// The peer tells how long its message is.
constexpr std::size_t no_limit = std::numeric_limits<std::ptrdiff_t>::max();

}  // namespace

message_connection::message_connection(std::shared_ptr<message_worker> over)
    : over_(std::move(over)), news_(std::make_shared<connection_news>(*over_->loop())) {}

message_connection::~message_connection() {
  if (!peer_ || ucx::is_forked_child()) return;
  over_->close_later(std::move(*peer_));
}

/// Returns handlers that know the news weakly: untaken messages keep the worker.
ucx::connection_events message_connection::events(std::function<void(bool)> on_decision) {
  const std::weak_ptr<connection_news> news = news_;
  ucx::connection_events told;
  told.on_established = [news, on_decision](const ucx::endpoint&, const ucx::connection_report&) {
    if (const auto here = news.lock()) here->tell();
    if (on_decision) on_decision(true);
  };
  told.on_refused = [news, on_decision](const ucx::connection_end& how) {
    if (const auto here = news.lock()) here->end(how);
    if (on_decision) on_decision(false);
  };
  told.on_closed = [news](const ucx::connection_end& how) {
    if (const auto here = news.lock()) here->end(how);
  };
  return told;
}

void message_connection::hold(ucx::endpoint peer) {
  peer_.emplace(std::move(peer));
  over_->inbox().add(peer_->id(), news_);
}

std::shared_ptr<message_connection> message_connection::connect(
    const std::shared_ptr<message_worker>& over, const ucx::peer_address& to,
    ucx::endpoint_options options) {
  auto made = std::make_shared<message_connection>(over);
  options.events = made->events(nullptr);
  made->hold(ucx::endpoint(over->worker(), to, std::move(options)));
  return made;
}

std::shared_ptr<message_connection> message_connection::accept(
    const std::shared_ptr<message_worker>& over, ucx::connection_request&& asked,
    std::function<void(bool)> on_decision) {
  auto made = std::make_shared<message_connection>(over);
  ucx::endpoint_options options;
  options.events = made->events(std::move(on_decision));
  made->hold(ucx::endpoint(over->worker(), std::move(asked), std::move(options)));
  return made;
}

message_endpoint_object::~message_endpoint_object() {
  if (!of_) return;
  const without_gil free;
  of_.reset();
}

nb::object message_endpoint_object::send(nb::handle buffer, std::uint64_t tag) {
  return begin_send(of_->over()->loop(), buffer,
                    [of = of_, tag](auto from) { return of->peer().start_send(tag, from); });
}

nb::object message_endpoint_object::send_active(nb::handle buffer) {
  ucx::active_message to;
  to.number = active_message_name();
  return begin_send(of_->over()->loop(), buffer,
                    [of = of_, to](auto from) { return of->peer().start_send(to, from); });
}

nb::object message_endpoint_object::send_parts(nb::handle buffers, std::uint64_t tag) {
  refuse_forked_child();
  borrowed lent;
  std::vector<std::span<const std::byte>> parts;
  for (nb::handle each : nb::iter(buffers)) parts.emplace_back(lent.take_buffer(each, use::read));
  return begin(
      of_->over()->loop(), lent,
      [of = of_, parts = std::move(parts), tag, stream = lent.cuda_stream()] {
        for (const std::span<const std::byte> each : parts) wait_for_stream(each, stream);
        return of->peer().start_send(tag, ucx::payload::parts(parts));
      },
      nothing, nullptr);
}

nb::object message_endpoint_object::receive(nb::handle buffer, std::uint64_t tag,
                                            std::uint64_t mask) {
  return begin_receive(
      of_->over()->loop(), buffer,
      [of = of_, wanted = ucx::tag_match(tag, mask)](auto into, const auto& options) {
        return of->peer().start_receive(wanted, into, options);
      },
      lengths_of);
}

nb::object message_endpoint_object::receive_whole(std::uint64_t tag, std::uint64_t mask) {
  const auto found = std::make_shared<received_whole>();
  borrowed no_buffer;
  return begin(
      of_->over()->loop(), no_buffer,
      [of = of_, wanted = ucx::tag_match(tag, mask), found] {
        return of->peer().start_receive(wanted, {found->made, no_limit});
      },
      [found](const ucx::request& ended) {
        return nb::object(nb::make_tuple(
            make_memoryview(found->made.bytes(), true, found, found->lent), ended.received().tag));
      },
      found);
}

nb::object begin_receive_parts(const std::shared_ptr<loop_worker>& loop,
                               std::function<ucx::request(const ucx::receive_target&)> start) {
  const auto found = std::make_shared<received_parts>();
  return finish_question(
      loop,
      [start = std::move(start), found] {
        return start({found->parts, no_limit});
      },
      [found] {
        nb::list views;
        for (std::size_t i = 0; i < found->parts.size(); ++i) {
          views.append(make_memoryview(found->parts[i], true, found, found->lent));
        }
        return nb::object(views);
      },
      found);
}

nb::object message_endpoint_object::receive_parts(std::uint64_t tag) {
  return begin_receive_parts(of_->over()->loop(), [of = of_, tag](const ucx::receive_target& into) {
    return of->peer().start_receive(tag, into);
  });
}

nb::object message_endpoint_object::stream_send(nb::handle buffer) {
  return begin_send(of_->over()->loop(), buffer,
                    [of = of_](auto from) { return of->peer().start_stream_send(from); });
}

nb::object message_endpoint_object::stream_receive(nb::handle buffer) {
  return begin_receive(of_->over()->loop(), buffer, [of = of_](auto into, const auto& options) {
    return of->peer().start_stream_receive(into, ucx::stream_amount::all, options);
  });
}

nb::object message_endpoint_object::flush() {
  return finish_question(
      of_->over()->loop(), [of = of_] { return of->peer().start_flush(); }, nothing);
}

nb::object message_endpoint_object::close() {
  return finish_question(
      of_->over()->loop(), [of = of_] { return of->peer().start_close(); }, nothing);
}

void message_endpoint_object::abort() {
  if (ucx::is_forked_child()) return;
  const without_gil free;
  std::error_code ignored;
  of_->peer().close(ucx::close_mode::abort, ignored);
  of_->over()->loop()->wake();
}

bool message_endpoint_object::probe(std::uint64_t tag) const {
  refuse_forked_child();
  const without_gil free;
  return of_->peer().probe(tag).has_value();
}

bool message_endpoint_object::has_active() const {
  refuse_forked_child();
  return of_->news().has_message();
}

nb::object message_endpoint_object::take_active() {
  refuse_forked_child();
  ucx::message oldest = of_->news().take();
  if (!oldest) return nb::none();
  return nb::cast(active_message_object(std::move(oldest), of_));
}

std::string message_endpoint_object::state() const {
  refuse_forked_child();
  const without_gil free;
  return std::string(to_string(of_->peer().state()));
}

nb::object message_endpoint_object::failure() const {
  refuse_forked_child();
  std::error_code why;
  std::optional<std::string> text;
  {
    const without_gil free;
    why = of_->peer().status();
    text = of_->news().end_text();
  }
  if (!why) return nb::none();
  return error_of(why, text && !text->empty() ? *text : why.message());
}

std::string message_endpoint_object::peer_address() const {
  const without_gil free;
  return to_string(of_->peer().peer());
}

std::vector<std::string> message_endpoint_object::transports() const {
  refuse_forked_child();
  const without_gil free;
  return of_->peer().transports();
}

std::uintptr_t message_endpoint_object::native_handle() const {
  refuse_forked_child();
  const without_gil free;
  return reinterpret_cast<std::uintptr_t>(of_->peer().native_handle());
}

void add_message_endpoint(nb::module_& module) {
  using object = message_endpoint_object;
  nb::class_<object>(module, "MessageEndpoint")
      .def("send", &object::send, nb::arg("buffer").none(), nb::arg("tag"))
      .def("send_active", &object::send_active, nb::arg("buffer").none())
      .def("send_parts", &object::send_parts, nb::arg("buffers").none(), nb::arg("tag"))
      .def("receive", &object::receive, nb::arg("buffer").none(), nb::arg("tag"),
           nb::arg("mask") = ucx::tag_match::every_bit)
      .def("receive_whole", &object::receive_whole, nb::arg("tag"), nb::arg("mask"))
      .def("receive_parts", &object::receive_parts, nb::arg("tag"))
      .def("stream_send", &object::stream_send, nb::arg("buffer").none())
      .def("stream_receive", &object::stream_receive, nb::arg("buffer").none())
      .def("flush", &object::flush)
      .def("close", &object::close)
      .def("abort", &object::abort)
      .def("probe", &object::probe, nb::arg("tag"))
      .def("take_active", &object::take_active)
      .def_prop_ro("has_active", &object::has_active)
      .def_prop_ro("number", &object::number)
      .def_prop_ro("id", &object::id)
      .def_prop_ro("state", &object::state)
      .def_prop_ro("failure", &object::failure)
      .def_prop_ro("peer", &object::peer_address)
      .def_prop_ro("transports", &object::transports)
      .def_prop_ro("handle", &object::native_handle);
  module.def(
      "size_of_buffer",
      [](nb::handle buffer) { return borrowed().take_buffer(buffer, use::read).size(); },
      nb::arg("buffer").none());
}

}  // namespace ucxio_python
