// Senders of connections and messages: sends, receives, the byte stream, flushes, closes.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "ucx/buffer.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/execution_names.hpp"
#include "ucx/execution_senders.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/message.hpp"
#include "ucx/payload.hpp"
#include "ucx/receive_target.hpp"
#include "ucx/request.hpp"
#include "ucx/worker.hpp"

namespace ucx {
inline namespace UCXIO_EXECUTION_NAMES {
namespace senders {

/// The value of receives: tag, length and kind of memory of the message.
struct take_info {
  template <class Call>
  message_info operator()(Call&, request& ended) const noexcept {
    return ended.received();
  }
};

/// A send of memory that the operation owns until it starts: then the send takes it over.
struct owned_send {
  message_destination to;
  buffer memory;
  send_options options;
  request operator()(endpoint& peer) { return peer.start_send(to, std::move(memory), options); }
};

/// A wait for a notification, which is kept in the operation state.
struct awaited_notification {
  memory_region* region;
  io_options options;
  notification taken = {};
  request operator()(worker& driven) { return region->start_wait_notify(driven, taken, options); }
};
struct take_notification {
  notification operator()(awaited_notification& call, request&) const noexcept {
    return call.taken;
  }
};

}  // namespace senders

/// Returns the sender of `endpoint::start_send`, for tags and active messages.
/// Lifetime: also a header, and a list of several runs or parts, until `start()` has returned.
inline auto async_send(endpoint& peer, const message_destination& to, const payload& what,
                       const send_options& options = {}) {
  return senders::over(
      peer, [to, what, options](endpoint& each) { return each.start_send(to, what, options); });
}
/// Like that, of a buffer that the operation owns.
inline auto async_send(endpoint& peer, const message_destination& to, buffer&& what,
                       const send_options& options = {}) {
  return senders::over(peer, senders::owned_send{to, std::move(what), options});
}

/// Returns the sender of `endpoint::start_receive`, or `worker::start_receive`, for a message with
/// a tag. Its value is the `message_info`. Lifetime: also the list of several runs, until `start()`
/// has returned.
inline auto async_receive(endpoint& peer, const tag_match& wanted, const receive_target& into,
                          const io_options& options = {}) {
  return senders::over<senders::take_info>(peer, [wanted, into, options](endpoint& each) {
    return each.start_receive(wanted, into, options);
  });
}
inline auto async_receive(worker& driven, const tag_match& wanted, const receive_target& into,
                          const io_options& options = {}) {
  return senders::over<senders::take_info>(driven, [wanted, into, options](worker& each) {
    return each.start_receive(wanted, into, options);
  });
}
/// Returns the sender of `message::start_receive`, the second phase of a receive in two. Its value
/// is the `message_info`. `driven` is the worker of the message.
/// Lifetime: also `taken`, until `start()` has returned.
inline auto async_receive(worker& driven, message& taken, const receive_target& into,
                          const io_options& options = {}) {
  return senders::over<senders::take_info>(driven, [part = &taken, into, options](worker&) {
    return part->start_receive(into, options);
  });
}

/// Returns the sender of `endpoint::start_stream_send`.
/// Lifetime: also a list of several runs, until `start()` has returned.
inline auto async_stream_send(endpoint& peer, const payload& what,
                              const send_options& options = {}) {
  return senders::over(
      peer, [what, options](endpoint& each) { return each.start_stream_send(what, options); });
}
/// Returns the sender of `endpoint::start_stream_receive`. Its value has the length. After an error
/// or a stop the length of a part that came is lost: use `as_sender` where that counts.
inline auto async_stream_receive(endpoint& peer, std::span<std::byte> into, stream_amount amount,
                                 const io_options& options = {}) {
  return senders::over<senders::take_info>(peer, [into, amount, options](endpoint& each) {
    return each.start_stream_receive(into, amount, options);
  });
}

/// Returns the sender of `memory_region::start_wait_notify`. Its value is the `notification`.
/// Lifetime: also `region`, until `start()` has returned.
inline auto async_wait_notify(worker& driven, memory_region& region,
                              const io_options& options = {}) {
  return senders::over<senders::take_notification>(driven,
                                                   senders::awaited_notification{&region, options});
}

/// Returns the sender of `endpoint::start_flush`.
inline auto async_flush(endpoint& written, const io_options& options = {}) {
  return senders::over(written, [options](endpoint& each) { return each.start_flush(options); });
}
/// Returns the sender of `endpoint::start_close`. After a stop the connection is dropped.
inline auto async_close(endpoint& ended, close_mode mode = close_mode::flush) {
  return senders::over(ended, [mode](endpoint& each) { return each.start_close(mode); });
}

}  // namespace UCXIO_EXECUTION_NAMES
}  // namespace ucx
