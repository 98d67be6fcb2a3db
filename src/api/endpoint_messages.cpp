// Of ucx::endpoint (ucx/endpoint.hpp): its calls about messages; endpoint.cpp has those about the
// connection.
#include <mutex>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "connection/endpoint_core.hpp"
#include "connection/frame_sender.hpp"
#include "cuda/device_pointer.hpp"
#include "message/message_exchange.hpp"
#include "message/message_link.hpp"
#include "message/receive_starts.hpp"
#include "message/send_operation.hpp"
#include "message/send_source.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/payload.hpp"
#include "ucx/receive_target.hpp"
#include "worker/core_access.hpp"
#include "worker/failed_operation.hpp"
#include "worker/worker_core.hpp"

namespace ucx {
namespace {

using detail::core_access;
using detail::endpoint_core;
using detail::send_source;
using detail::worker_core;

/// Says why a send can not even be started.
std::error_code send_error(const std::shared_ptr<endpoint_core>& over, const send_source& source) {
  if (!over) return errc::closed;
  if (over->is_inherited()) return errc::forked_child;
  if (!over->worker().context().has(feature::am)) return errc::feature_disabled;
  if (!over->speaks()) return errc::not_supported;
  if (source.header().size() > over->worker().sender().longest_header()) {
    return errc::header_too_long;
  }
  if (!detail::is_on_host(source.header()) || !source.has_a_way()) return errc::invalid_argument;
  if (source.owned() != nullptr && !*source.owned()) return errc::empty_buffer;
  return {};
}

std::string what_failed(std::error_code ec, const send_source& source) {
  if (ec == errc::invalid_argument && !source.has_a_way()) {
    return "sending a buffer, or parts, over the byte stream, which has no boundaries";
  }
  std::string text = "sending a message";
  if (ec == errc::feature_disabled) text += " on a context without feature::am";
  if (ec == errc::not_supported) text += " to a plain UCX peer, which takes none of this library's";
  if (ec == errc::closed) text += " over a connection that is not open";
  if (ec == errc::invalid_argument) text += " whose header is in a device's memory";
  if (ec == errc::empty_buffer) text += " of a buffer that was sent before";
  return text;
}

/// Says why nothing can be started now, so that the caller keeps what it has. REQUIRES: the
/// worker's lock.
std::error_code not_now(endpoint_core& over, const send_source& source,
                        const send_options& options) {
  if (const std::error_code unusable = over.status()) return unusable;
  const bool may_wait = options.backpressure == backpressure::wait;
  if (may_wait || !over.messages().outgoing().is_full(source.header().size(), source.length())) {
    return {};
  }
  return errc::would_block;
}

/// Starts a send, and returns it as an operation that somebody has to own; nothing on failure.
detail::send_operation* start(const std::shared_ptr<endpoint_core>& over, const send_source& source,
                              const send_options& options) {
  auto& idle = over->worker().pool_of<detail::send_operation>();
  detail::send_operation* const send = idle.take();
  try {
    send->begin(over, source, options);
  } catch (...) {
    idle.give_back(send);
    throw;
  }
  return send;
}

/// Sends a short message without an operation, which would cost more than to send it. Returns
/// whether it is gone.
bool send_short(const std::shared_ptr<endpoint_core>& over, const send_source& source,
                const send_options& options) {
  const bool is_plain = options.until == send_until::reusable && !options.kind;
  if (!over || !source.is_run() || !is_plain || over->is_inherited()) return false;
  const std::lock_guard guard(over->worker().lock());
  return over->messages().outgoing().send_short(source.kind(), source.tag(), source.header(),
                                                source.bytes());
}

request start_request(const std::shared_ptr<endpoint_core>& over, const send_source& source,
                      const send_options& options) {
  if (send_short(over, source, options)) return {};
  const std::error_code ec = send_error(over, source);
  if (ec) {
    return detail::failed_request(ec, what_failed(ec, source),
                                  over ? over->ucx_status_of(ec) : std::optional<int>());
  }
  const std::lock_guard guard(over->worker().lock());
  if (source.owned() != nullptr) {  // one that is not sent stays the caller's
    if (const std::error_code unusable = not_now(*over, source, options)) {
      return detail::failed_request(unusable, "sending a message to " + over->peer_name());
    }
  }
  return core_access::make_request(start(over, source, options));
}

/// Room for the handler of a post: without it nothing is started.
class handler_room {
 public:
  explicit handler_room(worker_core& worker) : worker_(&worker) { worker.expect_handler(); }
  handler_room(const handler_room&) = delete;
  handler_room& operator=(const handler_room&) = delete;
  ~handler_room() {
    if (worker_ != nullptr) worker_->forgo_handler();
  }
  void taken() noexcept { worker_ = nullptr; }

 private:
  worker_core* worker_;
};

/// Tells the outcome of `send`, which has no request, with a key.
void tell(detail::send_operation& send, std::uint64_t key, handler_room& room) noexcept {
  room.taken();
  send.tell(key);
  const auto held = send.let_go();  // goes behind the send; `over` keeps the connection
  send.release();
}

/// Starts a send that tells its outcome with a key. Returns why nothing was started.
std::error_code post(const std::shared_ptr<endpoint_core>& over, const send_source& source,
                     std::uint64_t key, const send_options& options) {
  if (const std::error_code useless = send_error(over, source)) return useless;
  const std::lock_guard guard(over->worker().lock());
  if (const std::error_code ec = not_now(*over, source, options)) return ec;
  handler_room room(over->worker());
  tell(*start(over, source, options), key, room);
  return {};
}

}  // namespace

request endpoint::start_send(const message_destination& to, const payload& what,
                             const send_options& options) {
  return start_request(core_, send_source(to, what), options);
}

void endpoint::send(const message_destination& to, const payload& what, const send_options& options,
                    std::error_code& ec) {
  start_send(to, what, options).wait(ec);
}

void endpoint::post_send(const message_destination& to, const payload& what, std::uint64_t key,
                         const send_options& options, std::error_code& ec) {
  const send_source source(to, what);
  const std::error_code outcome = post(core_, source, key, options);
  detail::end_with(outcome, ec, [&] { return what_failed(outcome, source); });
}

std::size_t endpoint::max_header_size() const noexcept {
  return core_ ? core_->worker().sender().longest_header() : 0;
}

request endpoint::start_receive(const tag_match& wanted, const receive_target& into,
                                const io_options& options) {
  if (!core_) return detail::failed_request(errc::closed, "receive over no connection");
  return detail::start_tagged(core_->worker(), core_, wanted, into, options);
}

message_info endpoint::receive(const tag_match& wanted, const receive_target& into,
                               const io_options& options, std::error_code& ec) {
  request receiving = start_receive(wanted, into, options);
  receiving.wait(ec);
  return receiving.received();
}

std::optional<message_info> endpoint::probe(const tag_match& wanted) const {
  if (!core_) return {};
  const std::lock_guard guard(core_->worker().lock());
  const detail::arrived_message* const found =
      core_->worker().messages().arrived().find(core_.get(), wanted);
  if (found == nullptr) return {};
  return message_info{found->said.tag, found->said.length, found->said.memory};
}

std::optional<message> endpoint::take(const tag_match& wanted) {
  if (!core_ || core_->is_inherited()) return {};
  detail::worker_core& worker = core_->worker();
  const std::lock_guard guard(worker.lock());
  detail::arrived_message* const found = worker.messages().arrived().find(core_.get(), wanted);
  if (found == nullptr) return {};
  worker.messages().take_by_hand(*found);
  return core_access::make_message(worker.shared_from_this(), *found);
}

request endpoint::start_stream_send(const payload& what, const send_options& options) {
  return start_request(core_, send_source(what), options);
}

void endpoint::stream_send(const payload& what, const send_options& options, std::error_code& ec) {
  start_stream_send(what, options).wait(ec);
}

request endpoint::start_stream_receive(std::span<std::byte> into, stream_amount amount,
                                       const io_options& options) {
  if (!core_) return detail::failed_request(errc::closed, "receive over no connection");
  return detail::start_stream(core_, amount, into, options);
}

std::size_t endpoint::stream_receive(std::span<std::byte> into, stream_amount amount,
                                     const io_options& options, std::error_code& ec) {
  request receiving = start_stream_receive(into, amount, options);
  receiving.wait(ec);
  return static_cast<std::size_t>(receiving.received().length);
}

void endpoint::set_message_handlers(message_handlers handlers) {
  if (!core_) return;
  auto made = std::make_shared<message_handlers>(std::move(handlers));
  const std::lock_guard guard(core_->worker().lock());
  core_->messages().swap_handlers(made);  // those before go behind the lock
}

}  // namespace ucx
