// Of ucx::endpoint (ucx/endpoint.hpp): its calls about messages; endpoint.cpp has those about the
// connection.
#include <mutex>
#include <string>
#include <utility>

#include "base/forked_child.hpp"
#include "base/result.hpp"
#include "connection/endpoint_core.hpp"
#include "connection/frame_sender.hpp"
#include "cuda/device_pointer.hpp"
#include "message/message_exchange.hpp"
#include "message/message_link.hpp"
#include "message/receive_starts.hpp"
#include "message/send_operation.hpp"
#include "ucx/buffer.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "wire/parts_table.hpp"
#include "worker/core_access.hpp"
#include "worker/failed_operation.hpp"
#include "worker/worker_core.hpp"

namespace ucx {
namespace {

using detail::core_access;
using detail::endpoint_core;
using detail::message_kind;
using detail::worker_core;

using byte_spans = std::span<const std::span<const std::byte>>;

/// Says why a send can not even be started.
std::error_code send_error(const std::shared_ptr<endpoint_core>& over,
                           std::span<const std::byte> header) {
  if (!over) return errc::closed;
  if (detail::is_forked_child()) return errc::forked_child;
  if (!over->worker().context().has(feature::am)) return errc::feature_disabled;
  if (header.size() > over->worker().sender().longest_header()) return errc::header_too_long;
  if (!detail::is_on_host(header)) return errc::invalid_argument;
  return {};
}

std::string what_failed(std::error_code ec) {
  std::string text = "sending a message";
  if (ec == errc::feature_disabled) text += " on a context without feature::am";
  if (ec == errc::closed) text += " over a connection that is not open";
  if (ec == errc::invalid_argument) text += " whose header is in a device's memory";
  if (ec == errc::buffer_gone) text += " of a buffer that was sent before";
  return text;
}

/// Starts a send, and returns it as an operation that somebody has to own; nothing on failure.
detail::send_operation* start(const std::shared_ptr<endpoint_core>& over, message_kind kind,
                              std::uint64_t tag, const detail::send_source& source,
                              const send_options& options) {
  auto& idle = over->worker().pool_of<detail::send_operation>();
  detail::send_operation* const send = idle.take();
  try {
    send->begin(over, kind, tag, source, options);
  } catch (...) {
    idle.give_back(send);
    throw;
  }
  return send;
}

request start_request(const std::shared_ptr<endpoint_core>& over, message_kind kind,
                      std::uint64_t tag, const detail::send_source& source,
                      const send_options& options) {
  const std::error_code ec = send_error(over, source.header);
  if (ec) return detail::failed_request(ec, what_failed(ec));
  const std::lock_guard guard(over->worker().lock());
  return core_access::make_request(start(over, kind, tag, source, options));
}

/// The same, of one run of bytes. A short message goes without an operation, which would cost more
/// than to send it.
request start_request(const std::shared_ptr<endpoint_core>& over, message_kind kind,
                      std::uint64_t tag, std::span<const std::byte> header,
                      std::span<const std::byte> bytes, const send_options& options) {
  const bool is_plain = options.until == send_until::reusable && !options.kind;
  if (over && is_plain && !detail::is_forked_child()) {
    const std::lock_guard guard(over->worker().lock());
    if (over->messages().outgoing().send_short(kind, tag, header, bytes)) return {};
  }
  return start_request(over, kind, tag, {.only = bytes, .header = header}, options);
}

/// Says why a send of `owned` can not be started; a buffer that is not sent stays the caller's.
std::error_code owned_error(const std::shared_ptr<endpoint_core>& over,
                            std::span<const std::byte> header, const buffer& owned) {
  const std::error_code ec = send_error(over, header);
  return !ec && !owned ? make_error_code(errc::buffer_gone) : ec;
}

/// Returns whether it may not wait, and would have to. REQUIRES: the worker's lock.
bool lacks_room(endpoint_core& over, std::size_t header, std::size_t payload,
                const send_options& options) {
  return options.full == when_full::fail && over.messages().outgoing().is_full(header, payload);
}

request start_owned(const std::shared_ptr<endpoint_core>& over, message_kind kind,
                    std::uint64_t tag, std::span<const std::byte> header, buffer& owned,
                    const send_options& options) {
  const std::error_code ec = owned_error(over, header, owned);
  if (ec) return detail::failed_request(ec, what_failed(ec));
  const std::lock_guard guard(over->worker().lock());
  if (const std::error_code unusable = over->status()) {
    return detail::failed_request(unusable, "sending a message to " + over->peer_name());
  }
  if (lacks_room(*over, header.size(), owned.size(), options)) {
    return detail::failed_request(errc::would_block, what_failed(errc::would_block));
  }
  return core_access::make_request(
      start(over, kind, tag, {.owned = &owned, .header = header}, options));
}

std::size_t length_of(const detail::send_source& source) noexcept {
  if (source.runs.empty() && !source.as_parts) return source.only.size();
  std::size_t length = source.as_parts ? detail::parts_table_size(source.runs.size()) : 0;
  for (const std::span<const std::byte>& each : source.runs) length += each.size();
  return length;
}

/// Says why nothing can be posted now, so that the caller keeps what it has. REQUIRES: the worker's
/// lock.
std::error_code post_error(endpoint_core& over, std::size_t header, std::size_t payload,
                           const send_options& options) {
  if (const std::error_code unusable = over.status()) return unusable;
  if (lacks_room(over, header, payload, options)) return errc::would_block;
  return {};
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

/// Tells the outcome of `send`, which nobody has a request of, with a key.
void tell(detail::send_operation& send, std::uint64_t key, handler_room& room) noexcept {
  room.taken();
  send.tell(key);
  const auto held = send.let_go();  // goes behind the send; `over` keeps the connection
  send.release();
}

/// Starts a send that tells its outcome with a key. Returns why nothing was started.
std::error_code post(const std::shared_ptr<endpoint_core>& over, message_kind kind,
                     std::uint64_t tag, const detail::send_source& source, std::uint64_t key,
                     const send_options& options) {
  if (const std::error_code useless = send_error(over, source.header)) return useless;
  const std::lock_guard guard(over->worker().lock());
  const std::error_code ec = post_error(*over, source.header.size(), length_of(source), options);
  if (ec) return ec;
  handler_room room(over->worker());
  tell(*start(over, kind, tag, source, options), key, room);
  return {};
}

std::error_code post_owned(const std::shared_ptr<endpoint_core>& over, message_kind kind,
                           std::uint64_t tag, std::span<const std::byte> header, buffer& owned,
                           std::uint64_t key, const send_options& options) {
  if (const std::error_code useless = owned_error(over, header, owned)) return useless;
  const std::lock_guard guard(over->worker().lock());
  const std::error_code ec = post_error(*over, header.size(), owned.size(), options);
  if (ec) return ec;
  handler_room room(over->worker());
  tell(*start(over, kind, tag, {.owned = &owned, .header = header}, options), key, room);
  return {};
}

void end_post(std::error_code outcome, std::error_code& ec) {
  detail::end_with(outcome, ec, [outcome] { return what_failed(outcome); });
}

}  // namespace

request endpoint::start_send(std::uint64_t tag, std::span<const std::byte> bytes,
                             const send_options& options) {
  return start_request(core_, message_kind::tagged, tag, {}, bytes, options);
}

request endpoint::start_send(std::uint64_t tag, byte_spans bytes, const send_options& options) {
  return start_request(core_, message_kind::tagged, tag, {.runs = bytes}, options);
}

request endpoint::start_send(std::uint64_t tag, buffer&& bytes, const send_options& options) {
  return start_owned(core_, message_kind::tagged, tag, {}, bytes, options);
}

void endpoint::send(std::uint64_t tag, std::span<const std::byte> bytes,
                    const send_options& options, std::error_code& ec) {
  start_send(tag, bytes, options).wait(ec);
}

request endpoint::start_send_parts(std::uint64_t tag, byte_spans parts,
                                   const send_options& options) {
  return start_request(core_, message_kind::tagged, tag, {.runs = parts, .as_parts = true},
                       options);
}

void endpoint::send_parts(std::uint64_t tag, byte_spans parts, const send_options& options,
                          std::error_code& ec) {
  start_send_parts(tag, parts, options).wait(ec);
}

void endpoint::post_send(std::uint64_t tag, std::span<const std::byte> bytes, std::uint64_t key,
                         const send_options& options, std::error_code& ec) {
  end_post(post(core_, message_kind::tagged, tag, {.only = bytes}, key, options), ec);
}

void endpoint::post_send(std::uint64_t tag, byte_spans bytes, std::uint64_t key,
                         const send_options& options, std::error_code& ec) {
  end_post(post(core_, message_kind::tagged, tag, {.runs = bytes}, key, options), ec);
}

void endpoint::post_send_parts(std::uint64_t tag, byte_spans parts, std::uint64_t key,
                               const send_options& options, std::error_code& ec) {
  end_post(post(core_, message_kind::tagged, tag, {.runs = parts, .as_parts = true}, key, options),
           ec);
}

void endpoint::post_send(std::uint64_t tag, buffer&& bytes, std::uint64_t key,
                         const send_options& options, std::error_code& ec) {
  end_post(post_owned(core_, message_kind::tagged, tag, {}, bytes, key, options), ec);
}

request endpoint::start_receive(const tag_match& wanted, std::span<std::byte> into,
                                const io_options& options) {
  if (!core_) return detail::failed_request(errc::closed, "receive over no connection");
  return detail::start_tagged(core_->worker(), core_, wanted, into, options);
}

request endpoint::start_receive(const tag_match& wanted, std::span<const std::span<std::byte>> into,
                                const io_options& options) {
  if (!core_) return detail::failed_request(errc::closed, "receive over no connection");
  return detail::start_tagged(core_->worker(), core_, wanted, {.runs = into}, options);
}

request endpoint::start_receive(const tag_match& wanted, buffer& made, std::size_t most,
                                const io_options& options) {
  if (!core_) return detail::failed_request(errc::closed, "receive over no connection");
  return detail::start_tagged(core_->worker(), core_, wanted, {.made = &made, .most = most},
                              options);
}

request endpoint::start_receive(const tag_match& wanted, buffer& made, buffer_pool& pool,
                                const io_options& options) {
  if (!core_) return detail::failed_request(errc::closed, "receive over no connection");
  return detail::start_tagged(core_->worker(), core_, wanted, made, pool, options);
}

request endpoint::start_receive(const tag_match& wanted, message_parts& made, std::size_t most,
                                const io_options& options) {
  if (!core_) return detail::failed_request(errc::closed, "receive over no connection");
  return detail::start_tagged(core_->worker(), core_, wanted, {.parts = &made, .most = most},
                              options);
}

message_info endpoint::receive(const tag_match& wanted, std::span<std::byte> into,
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
  if (!core_ || detail::is_forked_child()) return {};
  detail::worker_core& worker = core_->worker();
  const std::lock_guard guard(worker.lock());
  detail::arrived_message* const found = worker.messages().arrived().find(core_.get(), wanted);
  if (found == nullptr) return {};
  worker.messages().take_by_hand(*found);
  return core_access::make_message(worker.shared_from_this(), *found);
}

request endpoint::start_send_message(std::uint64_t number, std::span<const std::byte> header,
                                     std::span<const std::byte> bytes,
                                     const send_options& options) {
  return start_request(core_, message_kind::active, number, header, bytes, options);
}

request endpoint::start_send_message(std::uint64_t number, std::span<const std::byte> header,
                                     byte_spans bytes, const send_options& options) {
  return start_request(core_, message_kind::active, number, {.runs = bytes, .header = header},
                       options);
}

request endpoint::start_send_message(std::uint64_t number, std::span<const std::byte> header,
                                     buffer&& bytes, const send_options& options) {
  return start_owned(core_, message_kind::active, number, header, bytes, options);
}

void endpoint::post_send_message(std::uint64_t number, std::span<const std::byte> header,
                                 std::span<const std::byte> bytes, std::uint64_t key,
                                 const send_options& options, std::error_code& ec) {
  end_post(
      post(core_, message_kind::active, number, {.only = bytes, .header = header}, key, options),
      ec);
}

void endpoint::post_send_message(std::uint64_t number, std::span<const std::byte> header,
                                 byte_spans bytes, std::uint64_t key, const send_options& options,
                                 std::error_code& ec) {
  end_post(
      post(core_, message_kind::active, number, {.runs = bytes, .header = header}, key, options),
      ec);
}

void endpoint::post_send_message(std::uint64_t number, std::span<const std::byte> header,
                                 buffer&& bytes, std::uint64_t key, const send_options& options,
                                 std::error_code& ec) {
  end_post(post_owned(core_, message_kind::active, number, header, bytes, key, options), ec);
}

void endpoint::send_message(std::uint64_t number, std::span<const std::byte> header,
                            std::span<const std::byte> bytes, const send_options& options,
                            std::error_code& ec) {
  start_send_message(number, header, bytes, options).wait(ec);
}

std::size_t endpoint::longest_header() const noexcept {
  return core_ ? core_->worker().sender().longest_header() : 0;
}

request endpoint::start_stream_send(std::span<const std::byte> bytes, const send_options& options) {
  return start_request(core_, message_kind::stream, 0, {}, bytes, options);
}

request endpoint::start_stream_send(byte_spans bytes, const send_options& options) {
  return start_request(core_, message_kind::stream, 0, {.runs = bytes}, options);
}

void endpoint::stream_send(std::span<const std::byte> bytes, const send_options& options,
                           std::error_code& ec) {
  start_stream_send(bytes, options).wait(ec);
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
