#include "call/call_message.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

#include "base/name.hpp"
#include "call/call_memory.hpp"
#include "ucx/call_function.hpp"
#include "ucx/call_reader.hpp"
#include "ucx/call_writer.hpp"
#include "wire/wire.hpp"

namespace ucx::detail {
namespace {

constexpr std::size_t call_head_size = 48;
constexpr std::size_t bound_head_size = 40;
constexpr std::size_t answer_head_size = 24;
constexpr std::size_t cancel_head_size = least_call_head;
constexpr std::size_t clock_size = 8;
constexpr std::size_t part_size = 16;
static_assert(call_head_size + clock_size == longest_call_head);

/// The category of an error code.
enum class code_family : std::uint8_t { none, ucxio, generic };

/// Writes the beginning of a head of `size` bytes.
call_message begin_message(call_kind kind, std::uint64_t number, std::size_t size,
                           std::uint32_t flags = 0) {
  call_message made;
  made.head_size = size;
  put_at(made.head_room, 0, call_version);
  put_at(made.head_room, 1, static_cast<std::uint8_t>(kind));
  put_at(made.head_room, 2, static_cast<std::uint16_t>(size));
  put_at(made.head_room, 4, flags);
  put_at(made.head_room, 8, number);
  return made;
}
void append_bytes(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

/// Reads the beginning, of this version. `known`: the flags that it may have.
result<call_head> decode_known(std::span<const std::byte> head, std::uint32_t known) {
  auto found = decode_beginning(head);
  if (!found) return found;
  if (found->version != call_version) {
    return failure{errc::version_mismatch, "it is of version " + std::to_string(found->version) +
                                               ", and this side knows version 1"};
  }
  if ((found->flags & required_call_flags & ~known) != 0) {
    return failure{errc::not_supported, "it has flags of a later version"};
  }
  return found;
}

/// Returns where the stamp stands in a head of this kind; 0: it has none.
std::size_t place_of_clock(std::span<const std::byte> head) noexcept {
  switch (static_cast<call_kind>(take_at<std::uint8_t>(head, 1))) {
    case call_kind::call:
    case call_kind::bind:
      return call_head_size;
    case call_kind::bound:
      return bound_head_size;
    case call_kind::answer:
      return answer_head_size;
    case call_kind::cancel:
      break;
  }
  return 0;  // or a kind of a later version
}

failure too_short() { return {errc::protocol_error, "its head is too short"}; }

/// Returns where a head of this kind tells how many parts there are; 0: nowhere.
std::size_t place_of_part_count(call_kind kind) noexcept {
  switch (kind) {
    case call_kind::call:
      return 42;
    case call_kind::bound:
      return 32;
    case call_kind::answer:
      return 18;
    case call_kind::bind:
    case call_kind::cancel:
      break;
  }
  return 0;
}

/// Returns the kind of memory that a peer tells; one of later versions is another kind.
memory_kind told_kind(std::uint8_t number) noexcept {
  const auto last = static_cast<std::uint8_t>(memory_kind::rocm);
  return number <= last ? static_cast<memory_kind>(number) : memory_kind::other;
}

/// Cuts a text where a character ends, and replaces what is not UTF-8.
std::string short_text(std::string_view text) {
  std::string made(text.substr(0, longest_failure_text));
  std::size_t at = valid_utf8(made);
  while (at != made.size()) {
    const bool is_cut = made.size() < text.size() && at + 4 > made.size();
    if (is_cut) {
      made.resize(at);
    } else {
      made[at] = '?';
    }
    at = valid_utf8(made);
  }
  return made;
}

std::pair<code_family, int> wire_code(std::error_code code) {
  if (!code) return {code_family::none, 0};
  if (code.category() == error_category()) return {code_family::ucxio, code.value()};
  // On Linux the system's numbers are errno's, too.
  if (code.category() == std::generic_category() || code.category() == std::system_category()) {
    return {code_family::generic, code.value()};
  }
  return {code_family::none, 0};
}

std::error_code code_of_family(std::uint64_t family, int value) {
  if (family == static_cast<std::uint64_t>(code_family::ucxio)) return {value, error_category()};
  if (family == static_cast<std::uint64_t>(code_family::generic)) {
    return {value, std::generic_category()};
  }
  return {};
}

/// Reads a call by name, or a binding.
result<asked_call> decode_named(asked_call made, const split_call& wire) {
  if (wire.head.size() < call_head_size) return too_short();
  made.hash = {.high = take_at<std::uint64_t>(wire.head, 24),
               .low = take_at<std::uint64_t>(wire.head, 32)};
  const auto name_size = take_at<std::uint16_t>(wire.head, 40);
  if (made.kind == call_kind::bind && take_at<std::uint16_t>(wire.head, 42) != 0) {
    return failure{errc::not_supported, "it is a binding with parts beside its body"};
  }
  const auto parts = decode_parts(wire.head);
  if (!parts) return failure(parts.why());
  made.part_count = parts->count;
  // Where the memory is to land depends on the function: its name is in the head then.
  const bool is_in_head = parts->count > 0;
  const auto named = is_in_head ? wire.head.subspan(parts->end) : wire.body;
  if (name_size > named.size() || name_size > call_function::max_name_size) {
    return failure{errc::protocol_error, "its name is too long"};
  }
  made.name = {reinterpret_cast<const char*>(named.data()), name_size};
  made.arguments = is_in_head ? wire.body : wire.body.subspan(name_size);
  return made;
}

result<asked_call> decode_bound(asked_call made, const split_call& wire) {
  if (wire.head.size() < bound_head_size) return too_short();
  made.function = take_at<std::uint64_t>(wire.head, 24);
  const auto parts = decode_parts(wire.head);
  if (!parts) return failure(parts.why());
  made.part_count = parts->count;
  made.arguments = wire.body;
  return made;
}

}  // namespace

std::size_t call_message::length() const noexcept {
  std::size_t sum = body.size();
  for (const sent_part& each : parts) sum += each.bytes.size();
  return sum;
}

std::vector<std::byte> call_message::joined() const {
  std::vector<std::byte> made;
  made.reserve(head_size + body.size());
  append_bytes(made, head());
  append_bytes(made, body);
  return made;
}

result<split_call> split_message(std::span<const std::byte> wire) {
  if (wire.size() < least_call_head) return too_short();
  const std::size_t size = take_at<std::uint16_t>(wire, 2);
  if (size < least_call_head || size > wire.size()) {
    return failure{errc::protocol_error, "its head is longer than all of it"};
  }
  return split_call{wire.first(size), wire.subspan(size)};
}

result<call_head> decode_beginning(std::span<const std::byte> head) {
  if (head.size() < least_call_head) return too_short();
  if (take_at<std::uint16_t>(head, 2) != head.size()) {
    return failure{errc::protocol_error, "its head has another size than it says"};
  }
  return call_head{.version = take_at<std::uint8_t>(head, 0),
                   .kind = take_at<std::uint8_t>(head, 1),
                   .flags = take_at<std::uint32_t>(head, 4),
                   .number = take_at<std::uint64_t>(head, 8)};
}

std::chrono::nanoseconds time_left_of(std::span<const std::byte> head) noexcept {
  if (head.size() < bound_head_size) return {};
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const std::uint64_t told = std::min(take_at<std::uint64_t>(head, 16), most);
  return std::chrono::nanoseconds(static_cast<std::int64_t>(told));
}

void add_clock(call_message& to, clock_stamp sent) noexcept {
  assert(place_of_clock(to.head()) == to.head_size);
  put_at(to.head_room, to.head_size, sent.bits);
  to.head_size += clock_size;
  put_at(to.head_room, 2, static_cast<std::uint16_t>(to.head_size));
}

clock_stamp clock_of(std::span<const std::byte> head) noexcept {
  if (head.size() < least_call_head) return {};
  if (take_at<std::uint8_t>(head, 0) != call_version) return {};
  const std::size_t place = place_of_clock(head);
  if (place == 0 || head.size() < place + clock_size) return {};
  return {take_at<std::uint64_t>(head, place)};
}

void add_parts(call_message& to, std::span<const memory_kind> kinds) {
  const auto kind = static_cast<call_kind>(take_at<std::uint8_t>(to.head(), 1));
  const std::size_t table = place_of_clock(to.head()) + clock_size;
  const std::size_t end = table + part_size * to.parts.size();
  std::vector<std::byte> made(end);
  made.reserve(end + to.name.size());
  std::copy(to.head().begin(), to.head().end(), made.begin());
  put_at(made, place_of_part_count(kind), static_cast<std::uint16_t>(to.parts.size()));
  for (std::size_t i = 0; i < to.parts.size(); ++i) {
    put_at(made, table + i * part_size, std::uint64_t{to.parts[i].bytes.size()});
    const bool is_pinned = kinds[i] == memory_kind::cuda_pinned;
    const memory_kind told = is_pinned ? memory_kind::host : kinds[i];
    put_at(made, table + i * part_size + 8, static_cast<std::uint8_t>(told));
  }
  append_bytes(made, std::as_bytes(std::span(to.name)));
  put_at(made, 2, static_cast<std::uint16_t>(made.size()));
  to.long_head = std::move(made);
}

result<call_parts> decode_parts(std::span<const std::byte> head) {
  call_parts made;
  if (head.size() < least_call_head || take_at<std::uint8_t>(head, 0) != call_version) return made;
  const std::size_t place =
      place_of_part_count(static_cast<call_kind>(take_at<std::uint8_t>(head, 1)));
  if (place == 0 || head.size() < place + sizeof(std::uint16_t)) return made;
  made.count = take_at<std::uint16_t>(head, place);
  if (made.count == 0) return made;
  if (made.count > made.each.size()) {
    return failure{errc::protocol_error, "it has more than 8 parts beside its body"};
  }
  const std::size_t table = place_of_clock(head) + clock_size;
  made.end = table + part_size * made.count;
  if (head.size() < made.end) return too_short();
  for (std::size_t i = 0; i < made.count; ++i) {
    call_parts::told& part = made.each[i];
    part.size = take_at<std::uint64_t>(head, table + i * part_size);
    part.kind = told_kind(take_at<std::uint8_t>(head, table + i * part_size + 8));
    if (part.size > std::numeric_limits<std::uint64_t>::max() - made.total) {
      return failure{errc::protocol_error, "its parts are longer than any message"};
    }
    made.total += part.size;
  }
  return made;
}

call_message encode_request(const asked_call& request, std::span<const sent_part> parts) {
  const bool is_bound = request.kind == call_kind::bound;
  auto made =
      begin_message(request.kind, request.number, is_bound ? bound_head_size : call_head_size,
                    request.is_one_way ? call_is_one_way : 0U);
  const auto left = std::max<std::int64_t>(request.left.count(), 0);
  put_at(made.head_room, 16, static_cast<std::uint64_t>(left));
  if (is_bound) {
    put_at(made.head_room, 24, request.function);
  } else {
    put_at(made.head_room, 24, request.hash.high);
    put_at(made.head_room, 32, request.hash.low);
    put_at(made.head_room, 40, static_cast<std::uint16_t>(request.name.size()));
  }
  made.body.reserve(request.name.size() + request.arguments.size());
  if (parts.empty()) {
    append_bytes(made.body, std::as_bytes(std::span(request.name)));
  } else {
    made.name = request.name;
    made.parts.assign(parts.begin(), parts.end());
  }
  append_bytes(made.body, request.arguments);
  return made;
}

call_message encode_cancel(std::uint64_t number) {
  return begin_message(call_kind::cancel, number, cancel_head_size);
}

result<asked_call> decode_request(const split_call& wire) {
  const auto begun = decode_known(wire.head, call_is_one_way);
  if (!begun) return failure(begun.why());
  asked_call made;
  made.kind = static_cast<call_kind>(begun->kind);
  made.number = begun->number;
  made.is_one_way = (begun->flags & call_is_one_way) != 0;
  if (made.kind == call_kind::cancel) return made;
  const bool is_known =
      made.kind == call_kind::call || made.kind == call_kind::bound || made.kind == call_kind::bind;
  if (!is_known) return failure{errc::not_supported, "its kind is of a later version"};
  if (wire.head.size() < bound_head_size) return too_short();
  made.left = time_left_of(wire.head);
  auto read = made.kind == call_kind::bound ? decode_bound(made, wire) : decode_named(made, wire);
  if (read && read->arguments.size() > call_writer::max_size) {
    return failure{errc::protocol_error, "its arguments have more than 1 MiB"};
  }
  return read;
}

call_failure failure_of_request(const failure& why) {
  call_failure made{.outcome = call_outcome::bad_call, .text = "it is no call: " + why.text};
  if (why.code == errc::version_mismatch) {
    made.outcome = call_outcome::unknown_version;
    made.text = why.text;
  } else if (why.code == errc::not_supported) {
    made.outcome = call_outcome::not_understood;
    made.text = why.text;
  }
  return made;
}

errc code_at_caller(call_outcome outcome) noexcept {
  switch (outcome) {
    case call_outcome::unknown_function:
      return errc::no_such_name;
    case call_outcome::signature_differs:
      return errc::signature_differs;
    case call_outcome::handler_failed:
    case call_outcome::result_too_large:
      return errc::call_failed;
    case call_outcome::unknown_version:
      return errc::version_mismatch;
    case call_outcome::not_understood:
      return errc::not_supported;
    case call_outcome::refused:
      return errc::permission_denied;
    case call_outcome::busy:
      return errc::busy;
    case call_outcome::given_up:
      return errc::timed_out;
    case call_outcome::no_room:
      return errc::no_space;
    case call_outcome::done:
    case call_outcome::bad_call:
    case call_outcome::bad_arguments:
      return errc::protocol_error;
  }
  return errc::unexpected;  // of a later version
}

failure failure_at_caller(const call_failure& why, std::string_view function,
                          std::string_view signature) {
  std::string text = "calling " + std::string(function) + ": " + why.text;
  if (why.outcome == call_outcome::signature_differs) {
    text += ": the caller knows ";
    text += signature;
    text += ", and the function is ";
    text += why.signature;
  }
  failure made{code_at_caller(why.outcome), std::move(text)};
  if (why.outcome == call_outcome::handler_failed) made.cause = why.code;
  if (why.outcome == call_outcome::result_too_large) made.cause = errc::no_space;
  return made;
}

call_message encode_result(std::uint64_t number, std::span<const std::byte> value) {
  auto made = begin_message(call_kind::answer, number, answer_head_size);
  append_bytes(made.body, value);
  return made;
}

call_message encode_result_of(std::uint64_t number, const call_writer& value) {
  call_message made = encode_result(number, value.written());
  made.parts = call_memory_access::parts(value);
  return made;
}

call_message encode_failure(std::uint64_t number, const call_failure& failure) {
  const auto [family, value] = wire_code(failure.code);
  call_writer body;
  body.text(short_text(failure.text)).text(failure.signature);
  body.unsigned_integer(static_cast<std::uint64_t>(family)).integer(value);
  auto made = begin_message(call_kind::answer, number, answer_head_size);
  put_at(made.head_room, 16, static_cast<std::uint16_t>(failure.outcome));
  append_bytes(made.body, body.written());
  return made;
}

call_outcome outcome_of(const call_message& answer) noexcept {
  return static_cast<call_outcome>(take_at<std::uint16_t>(answer.head(), 16));
}

result<call_answer> decode_answer(const split_call& wire) {
  const auto begun = decode_known(wire.head, 0);
  if (!begun) return failure(begun.why());
  if (begun->kind != static_cast<std::uint8_t>(call_kind::answer)) {
    return failure{errc::protocol_error, "its kind is another one"};
  }
  if (wire.head.size() < answer_head_size) return too_short();
  const auto parts = decode_parts(wire.head);
  if (!parts) return failure(parts.why());
  if (wire.body.size() > call_writer::max_size) {
    return failure{errc::protocol_error, "it has more than 1 MiB"};
  }
  call_answer made{.number = begun->number, .part_count = parts->count};
  made.failure.outcome = static_cast<call_outcome>(take_at<std::uint16_t>(wire.head, 16));
  if (made.failure.outcome == call_outcome::done) {
    made.value = wire.body;
    return made;
  }
  // A later version may have more values behind these.
  call_reader fields(wire.body);
  made.failure.text = fields.text();
  made.failure.signature = fields.text();
  const std::uint64_t family = fields.unsigned_integer();
  const std::int64_t value =
      fields.integer(std::numeric_limits<int>::min(), std::numeric_limits<int>::max());
  made.failure.code = code_of_family(family, static_cast<int>(value));
  if (made.failure.text.size() > longest_failure_text ||
      made.failure.signature.size() > call_signature::max_size) {
    fields.fail("a text is too long");
  }
  if (!fields.ok()) return failure{errc::protocol_error, fields.why()};
  return made;
}

}  // namespace ucx::detail
