#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>

#include "ucx/buffer.hpp"
#include "ucx/export.hpp"

namespace ucx {

namespace detail {
class send_source;
}  // namespace detail

/// The address of an active message: a handler of the peer, and a header for it. The peer's
/// `worker::on_message` of this number gets the message.
/// Lifetime: `header`, during the call that sends. The call copies it.
struct active_message {
  std::uint64_t number = 0;
  /// At most `endpoint::max_header_size()` bytes, in memory of the host.
  std::span<const std::byte> header = {};
};

/// The address of a message at the peer. A number is a tag, for a receive that wants it. An
/// `active_message` is for a handler. It is a parameter of calls that send, made at the call.
///
///     peer.send(7, bytes);
///     peer.send(ucx::active_message{3, header}, bytes);
///
/// Lifetime: it refers to the header.
class message_destination {
 public:
  constexpr message_destination(std::uint64_t tag) noexcept  // NOLINT(google-explicit-constructor)
      : number_(tag) {}
  constexpr message_destination(
      const active_message& to) noexcept  // NOLINT(google-explicit-constructor)
      : number_(to.number), header_(to.header), is_active_(true) {}

 private:
  friend class detail::send_source;

  std::uint64_t number_;
  std::span<const std::byte> header_ = {};
  bool is_active_ = false;
};

/// The bytes of a send, in one of four forms. It is a parameter of calls that send, made at the
/// call.
///
///     peer.send(7, bytes);                            // one run of bytes
///     peer.send(7, gathered);                         // several, which arrive as one
///     peer.send(7, ucx::payload::parts(gathered));    // several, which the receiver tells apart
///     peer.send(7, std::move(filled));                // a buffer, which the send takes over
///     peer.send(7, {});                               // no bytes
///
/// Any form goes to a tag and to a handler, by each call that sends a message. The byte stream
/// takes the first two forms. It has no boundaries, and refuses the others with
/// `invalid_argument`.
/// Lifetime: it owns nothing. The call that sends reads lists of spans, and empties the buffer. The
/// bytes of spans are used until the send is done.
/// Cost: it allocates nothing, and copies nothing.
class payload {
 public:
  /// Has no bytes.
  payload() noexcept = default;
  /// Has one run of bytes.
  template <detail::span_of_bytes<const std::byte> Bytes>
  payload(Bytes&& bytes)  // NOLINT(google-explicit-constructor): they are one
      : form_(std::in_place_type<run>, std::forward<Bytes>(bytes)) {}
  /// Has several runs of bytes, which the receiver gets as one.
  template <detail::spans_of_bytes<const std::byte> Spans>
  payload(Spans&& gathered)  // NOLINT(google-explicit-constructor): they are one
      : form_(std::in_place_type<run_list>, std::forward<Spans>(gathered)) {}
  /// Has the bytes of `taken` that are in use. The send takes the buffer over when it starts, and
  /// gives it back to its pool, or frees it, when it is done. Where nothing starts, the buffer is
  /// still the caller's: after `would_block`, `closed` and every other error of the call itself. An
  /// empty one is `empty_buffer`.
  payload(buffer&& taken) noexcept  // NOLINT(google-explicit-constructor): it is one
      : form_(&taken) {}

  /// Has any number of parts, also none, also empty ones. The peer receives them as
  /// `message_parts`: as many, each with its length. For other receives, and in
  /// `message::data()`, the message is a table of the lengths with the bytes behind it. The table
  /// has eight bytes for each part, and eight for all.
  /// Cost: that of several runs, one of which is the table.
  static payload parts(std::span<const std::span<const std::byte>> each) noexcept {
    return payload(std::in_place_type<part_list>, each);
  }

 private:
  friend class detail::send_source;

  using run = std::span<const std::byte>;
  using run_list = std::span<const run>;
  struct part_list {
    run_list each;
  };
  payload(std::in_place_type_t<part_list>, run_list each) noexcept : form_(part_list{each}) {}

  std::variant<run, run_list, part_list, buffer*> form_;
};

#if UCXIO_OLD_NAMES
using message_id [[deprecated("message_destination")]] = message_destination;
#endif

}  // namespace ucx
