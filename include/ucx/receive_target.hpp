// Receiving a message: the tags that match, and the place for its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "ucx/buffer.hpp"
#include "ucx/memory_resources.hpp"
#include "ucx/version.hpp"

namespace ucx {

/// The tags that a receive takes: those that equal `tag` in the bits of `mask`. Made of one number
/// it is that tag alone.
struct tag_match {
  static constexpr std::uint64_t every_bit = ~std::uint64_t{0};

  constexpr tag_match(std::uint64_t wanted,  // NOLINT(google-explicit-constructor): a tag is one
                      std::uint64_t significant = every_bit) noexcept
      : tag(wanted), mask(significant) {}
  /// Takes every tag.
  static constexpr tag_match any() noexcept { return {0, 0}; }

#if UCXIO_OLD_NAMES
  [[deprecated("compare the bits of mask")]] constexpr bool accepts(
      std::uint64_t candidate) const noexcept {
    return ((candidate ^ tag) & mask) == 0;
  }
#endif

  std::uint64_t tag;
  std::uint64_t mask;
};

namespace detail {
class landing_place;
}

/// The received parts of `payload::parts`: as many as were sent, with their lengths.
/// They lie without gaps in memory that was allocated for all of them together. The target of a
/// receive must stay in its place until the request is done. Its old parts go when the message
/// comes. They stay where the receive fails before that.
class UCXIO_EXPORT message_parts {
 public:
  /// Makes an object without parts.
  message_parts() noexcept = default;

  std::size_t size() const noexcept { return parts_.size(); }
  bool empty() const noexcept { return parts_.empty(); }
  /// Returns a part.
  /// Lifetime: the part's bytes, until this object dies, even if it moves.
  /// REQUIRES: `index` is below `size()`.
  std::span<std::byte> operator[](std::size_t index) noexcept { return parts_[index]; }
  std::span<const std::byte> operator[](std::size_t index) const noexcept { return parts_[index]; }

 private:
  friend class detail::landing_place;
  std::error_code find_parts() noexcept;

  buffer memory_;
  std::vector<std::span<std::byte>> parts_;
};

class message;

namespace detail {
struct receive_place;
}

/// The place for a message: memory of the caller's, or memory that is made when the length is
/// known. It is a parameter of calls that receive, made at the call.
///
///     peer.receive(7, bytes);                    // one run of bytes
///     peer.receive(7, scattered);                // several, filled one behind the other
///     peer.receive(7, {made, max_size});         // a buffer, allocated for the message
///     peer.receive(7, {made, pool});             // a buffer of a pool, taken for the message
///     peer.receive(7, {parts, max_size});        // message_parts, as payload::parts sent them
///     held.receive({made, resources, max_size}); // a buffer of the kind of the sender's memory
///
/// Any form but the last one goes with every receive of a message. `message` alone takes the last
/// one: only of a message that the program holds is the kind known at the call. `endpoint` and
/// `worker` refuse it with `not_supported`. `take()` the message first, or handle it.
/// A message that is longer than its place is `message_truncated`. Nothing is written. The message
/// is lost, unless the program holds it and its payload is here (`message::has_payload`).
/// Lifetime: it owns nothing. The call that receives reads lists of spans. The bytes of spans, and
/// `made`, must stay where they are, untouched, until the receive is done.
/// Cost: it allocates nothing itself.
class receive_target {
 public:
  /// Has no bytes: only an empty message fits.
  receive_target() noexcept = default;
  /// Fills one run of bytes.
  template <detail::span_of_bytes<std::byte> Bytes>
  receive_target(Bytes&& into)  // NOLINT(google-explicit-constructor): they are one
      : form_(std::in_place_type<run>, std::forward<Bytes>(into)) {}
  /// Fills several runs of bytes, one behind the other.
  template <detail::spans_of_bytes<std::byte> Spans>
  receive_target(Spans&& scattered)  // NOLINT(google-explicit-constructor): they are one
      : form_(std::in_place_type<run_list>, std::forward<Spans>(scattered)) {}

  /// Allocates `made` for the message: `max_size` bytes at most, because a peer tells the length.
  /// The old memory of `made` goes then. It stays where the receive ends without a message.
  /// Errors: also no_memory.
  receive_target(buffer& made, std::size_t max_size) noexcept
      : form_(sized_buffer{&made, max_size}) {}

  /// Takes `made` from `pool` when the message is there. One pool may serve any number of receives.
  /// Where all buffers are out, the message waits until one comes back. Meanwhile it keeps its
  /// room, and in the end its sender waits. Waiting receives are served in turn, and before callers
  /// of `take()`. The old memory of `made` goes at the call. The pool may go before the receive is
  /// done.
  /// Errors: message_truncated where the buffers of the pool are too small; timed_out also where no
  /// buffer came back: the next receive then gets the message, or the program keeps the one that it
  /// holds; closed (a pool that was moved from).
  receive_target(buffer& made, buffer_pool& pool) noexcept : form_(pooled_buffer{&made, &pool}) {}

  /// Allocates `made` for a message that was sent as parts. `max_size` counts eight more bytes for
  /// each part, and eight for all of them.
  /// Errors: also no_memory; protocol_error, where it was not sent as parts. The connection lives,
  /// and `made` has no parts.
  receive_target(message_parts& made, std::size_t max_size) noexcept
      : form_(sized_parts{&made, max_size}) {}

  /// Allocates `made` from the resource of `from` for the kind of the sender's memory
  /// (`message_info::memory`), for a payload of up to `max_size` bytes. The call allocates. `made`
  /// owns the memory as soon as the receive has started, and the old memory of `made` goes. A
  /// receive that fails at once leaves `made` alone. A resource for a kind that neither the
  /// processor nor the CUDA driver copies to (`rocm`, `other`) counts as missing.
  /// Lifetime: the resource, until `made` has died; `from`, during the call.
  /// Errors: also no_memory (the resource's std::bad_alloc), not_supported
  /// (`missing_resource::strict`; a receive of `endpoint` or `worker`). With either nothing was
  /// started, and the program keeps the message.
  receive_target(buffer& made, const memory_resources& from, std::size_t max_size,
                 missing_resource missing = missing_resource::fallback) noexcept
      : form_(buffer_by_kind{&made, &from, max_size, missing}) {}

 private:
  friend class message;
  friend struct detail::receive_place;

  using run = std::span<std::byte>;
  using run_list = std::span<const run>;
  struct sized_buffer {
    buffer* made;
    std::size_t max_size;
  };
  struct pooled_buffer {
    buffer* made;
    buffer_pool* pool;
  };
  struct sized_parts {
    message_parts* made;
    std::size_t max_size;
  };
  struct buffer_by_kind {
    buffer* made;
    const memory_resources* from;
    std::size_t max_size;
    missing_resource missing;
  };

  std::variant<run, run_list, sized_buffer, pooled_buffer, sized_parts, buffer_by_kind> form_;
};

}  // namespace ucx
