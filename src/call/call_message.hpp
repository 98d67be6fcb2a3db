// The bytes of calls and answers: docs/reference/calls.md, "Wire form".
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/result.hpp"
#include "ucx/call_reader.hpp"
#include "ucx/call_writer.hpp"
#include "ucx/content_digest.hpp"
#include "ucx/hybrid_clock.hpp"
#include "ucx/memory_place.hpp"

namespace ucx::detail {

inline constexpr std::uint8_t call_version = 1;

/// Numbers of the wire.
enum class call_kind : std::uint8_t {
  call = 1,    ///< Of a function by name.
  answer = 2,  ///< To a call, or to a binding.
  bound = 3,   ///< A call of a function by its number, which a binding told.
  bind = 4,    ///< Asks for the number of a function.
  cancel = 5,  ///< The caller does not want the answer any more.
};

/// Bits of the flags. A reader ignores those of the lower half that it does not know. With one of
/// the upper half that it does not know, it does not run a call.
inline constexpr std::uint32_t call_is_one_way = std::uint32_t{1} << 16U;
inline constexpr std::uint32_t required_call_flags = 0xffff'0000U;

/// Bytes of the part of a head that is the same in every version, and of the longest head.
inline constexpr std::size_t least_call_head = 16;
inline constexpr std::size_t longest_call_head = 56;

/// Bytes to send: a head, what stands behind it, and memory beside that.
struct call_message {
  std::array<std::byte, longest_call_head> head_room = {};
  std::size_t head_size = 0;
  std::vector<std::byte> long_head = {};  ///< Of one with parts, from `add_parts` on.
  std::string name = {};                  ///< That goes into the head, behind the table of parts.
  std::vector<std::byte> body = {};
  std::vector<sent_part> parts = {};

  std::span<const std::byte> head() const noexcept {
    return long_head.empty() ? std::span(head_room).first(head_size) : std::span(long_head);
  }
  /// Returns how many bytes go behind the head.
  std::size_t length() const noexcept;
  /// Returns head and body, one behind the other. REQUIRES: it has no parts.
  std::vector<std::byte> joined() const;
};

/// The parts of bytes that came together.
struct split_call {
  std::span<const std::byte> head;
  std::span<const std::byte> body;
};
/// Errors: protocol_error.
result<split_call> split_message(std::span<const std::byte> wire);

/// The beginning of a head.
struct call_head {
  std::uint8_t version = 0;
  std::uint8_t kind = 0;
  std::uint32_t flags = 0;
  std::uint64_t number = 0;  ///< Of the call, chosen by the caller. An answer has the call's.
};
/// Reads it, of any version.
/// Errors: protocol_error.
result<call_head> decode_beginning(std::span<const std::byte> head);

/// Returns the time that a call, or a binding, has left; 0 where it tells none.
std::chrono::nanoseconds time_left_of(std::span<const std::byte> head) noexcept;

/// Adds a stamp to the head of a call, a binding or an answer. REQUIRES: it has none.
void add_clock(call_message& to, clock_stamp sent) noexcept;
/// Returns the stamp of a head; an empty one where it has none.
clock_stamp clock_of(std::span<const std::byte> head) noexcept;

/// The memory beside a body, as the head tells of it.
struct call_parts {
  struct told {
    std::uint64_t size = 0;
    memory_kind kind = memory_kind::host;  ///< Of the sender's memory.
  };
  std::array<told, call_writer::max_parts> each = {};
  std::size_t count = 0;
  std::uint64_t total = 0;
  std::size_t end = 0;  ///< Where the table ends in the head.

  std::span<const told> all() const noexcept { return std::span(each).first(count); }
};
/// Writes the table of parts into the head, whose last part it is. REQUIRES: a call or an answer.
void add_parts(call_message& to, std::span<const memory_kind> kinds);
/// Reads it. Messages of other versions, and bindings and cancellations, have none.
/// Errors: protocol_error.
result<call_parts> decode_parts(std::span<const std::byte> head);

/// A call, or a binding. It refers to the bytes that it was read from.
struct asked_call {
  call_kind kind = call_kind::call;
  bool is_one_way = false;
  std::uint64_t number = 0;
  std::chrono::nanoseconds left = {};  ///< Until its deadline; 0: none is told.
  content_digest hash = {};            ///< Of the signature that the caller knows. Not of `bound`.
  std::uint64_t function = 0;          ///< Of `bound`.
  std::string_view name = {};
  std::span<const std::byte> arguments = {};
  std::size_t part_count = 0;          ///< So many the head tells of.
  std::span<landed_part> memory = {};  ///< Those that are here.
};

/// `parts`: what goes beside the arguments, of a call that is no binding.
call_message encode_request(const asked_call& request, std::span<const sent_part> parts = {});
call_message encode_cancel(std::uint64_t number);
/// Errors: protocol_error; version_mismatch; not_supported: parts, kinds or flags of later
/// versions.
result<asked_call> decode_request(const split_call& wire);

/// How a call ended, as its answer says. Numbers of the wire.
enum class call_outcome : std::uint16_t {
  done = 0,
  bad_call = 1,  ///< No call.
  unknown_function = 2,
  signature_differs = 3,
  bad_arguments = 4,
  handler_failed = 5,
  result_too_large = 6,
  unknown_version = 7,
  not_understood = 8,  ///< It has parts, flags or a kind of later versions.
  refused = 9,
  busy = 10,
  given_up = 11,  ///< Its deadline passed before it ran.
  no_room = 12,   ///< It has more memory beside it than the peer takes.
};
inline constexpr call_outcome last_call_outcome = call_outcome::no_room;

/// Why there is no result.
struct call_failure {
  call_outcome outcome = call_outcome::bad_call;
  std::string text = {};
  std::string signature = {};  ///< Of `signature_differs`: the callee's.
  std::error_code code = {};   ///< Of `handler_failed`: what was thrown, if it had a code.
};
/// Returns why `decode_request` failed, for the caller.
call_failure failure_of_request(const failure& why);
/// Returns the error of a failure at the caller. It is never what a function threw: that is
/// `call_failure::code`.
errc code_at_caller(call_outcome outcome) noexcept;
/// Returns the failure in the caller's words.
failure failure_at_caller(const call_failure& why, std::string_view function,
                          std::string_view signature);

/// Bytes of the text of a failure at most. A longer one is cut.
inline constexpr std::size_t longest_failure_text = 1024;

call_message encode_result(std::uint64_t number, std::span<const std::byte> value);
/// With the memory beside it.
call_message encode_result_of(std::uint64_t number, const call_writer& value);
call_message encode_failure(std::uint64_t number, const call_failure& failure);

/// Returns how the call of an answer ended. REQUIRES: `answer` was made by one of these.
call_outcome outcome_of(const call_message& answer) noexcept;

struct call_answer {
  std::uint64_t number = 0;
  call_failure failure = {};              ///< Its outcome is `done` where there is a result.
  std::span<const std::byte> value = {};  ///< The result, in the bytes that were read.
  std::size_t part_count = 0;             ///< So many the head tells of.
};
/// Errors: protocol_error; version_mismatch; not_supported: parts or flags of later versions.
result<call_answer> decode_answer(const split_call& wire);

}  // namespace ucx::detail
