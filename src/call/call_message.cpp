#include "call/call_message.hpp"

#include <limits>
#include <utility>

#include "base/name.hpp"
#include "ucx/call_function.hpp"
#include "ucx/call_reader.hpp"
#include "ucx/call_writer.hpp"
#include "wire/wire.hpp"

namespace ucx::detail {
namespace {

// Both begin: version, kind, a number of 16 bits, and the number of parts beside the body.
constexpr std::uint8_t call_kind = 1;
constexpr std::uint8_t answer_kind = 2;
constexpr std::size_t answer_head_size = 8;
constexpr std::size_t request_head_size = 24;

/// The category of an error code.
enum class code_family : std::uint8_t { none, ucxio, generic };

/// Returns a head of `head_size` bytes, which has room for `rest_size` behind it.
std::vector<std::byte> begin_message(std::uint8_t kind, std::uint16_t number, std::size_t head_size,
                                     std::size_t rest_size) {
  std::vector<std::byte> made;
  made.reserve(head_size + rest_size);
  made.resize(head_size);
  put_at(made, 0, call_version);
  put_at(made, 1, kind);
  put_at(made, 2, number);
  return made;
}
void append_bytes(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

/// Reads the beginning that both have. Returns its number.
result<std::uint16_t> decode_head(std::span<const std::byte> wire, std::uint8_t kind,
                                  std::size_t size) {
  if (wire.size() < size) return failure{errc::protocol_error, "it is too short"};
  const auto version = take_at<std::uint8_t>(wire, 0);
  if (version != call_version) {
    return failure{errc::version_mismatch, "it is of version " + std::to_string(version) +
                                               ", and this side knows version 1"};
  }
  if (take_at<std::uint8_t>(wire, 1) != kind) {
    return failure{errc::protocol_error, "its kind is another one"};
  }
  if (take_at<std::uint32_t>(wire, 4) != 0) {
    return failure{errc::protocol_error, "it has parts beside its body, unknown in version 1"};
  }
  return take_at<std::uint16_t>(wire, 2);
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

}  // namespace

std::vector<std::byte> encode_request(const call_request& request) {
  auto made = begin_message(call_kind, static_cast<std::uint16_t>(request.name.size()),
                            request_head_size, request.name.size() + request.arguments.size());
  put_at(made, 8, request.hash.high);
  put_at(made, 16, request.hash.low);
  append_bytes(made, std::as_bytes(std::span(request.name)));
  append_bytes(made, request.arguments);
  return made;
}

result<call_request> decode_request(std::span<const std::byte> wire) {
  const auto name_size = decode_head(wire, call_kind, request_head_size);
  if (!name_size) return name_size.why();
  const auto rest = wire.subspan(request_head_size);
  if (*name_size > rest.size() || *name_size > call_function::max_name_size) {
    return failure{errc::protocol_error, "its name is too long"};
  }
  if (rest.size() - *name_size > call_writer::max_size) {
    return failure{errc::protocol_error, "its arguments have more than 1 MiB"};
  }
  return call_request{
      .name = {reinterpret_cast<const char*>(rest.data()), *name_size},
      .hash = {.high = take_at<std::uint64_t>(wire, 8), .low = take_at<std::uint64_t>(wire, 16)},
      .arguments = rest.subspan(*name_size)};
}

std::vector<std::byte> encode_result(std::span<const std::byte> value) {
  auto made = begin_message(answer_kind, static_cast<std::uint16_t>(call_outcome::done),
                            answer_head_size, value.size());
  append_bytes(made, value);
  return made;
}

std::vector<std::byte> encode_failure(const call_failure& failure) {
  const auto [family, value] = wire_code(failure.code);
  call_writer body;
  body.text(short_text(failure.text)).text(failure.signature);
  body.unsigned_integer(static_cast<std::uint64_t>(family)).integer(value);
  const auto values = body.written();
  auto made = begin_message(answer_kind, static_cast<std::uint16_t>(failure.outcome),
                            answer_head_size, values.size());
  append_bytes(made, values);
  return made;
}

result<call_answer> decode_answer(std::span<const std::byte> wire) {
  const auto outcome = decode_head(wire, answer_kind, answer_head_size);
  if (!outcome) return outcome.why();
  if (*outcome > static_cast<std::uint16_t>(last_call_outcome)) {
    return failure{errc::protocol_error, "its outcome is unknown"};
  }
  const auto body = wire.subspan(answer_head_size);
  if (body.size() > call_writer::max_size) {
    return failure{errc::protocol_error, "it has more than 1 MiB"};
  }
  call_answer made;
  made.failure.outcome = static_cast<call_outcome>(*outcome);
  if (made.failure.outcome == call_outcome::done) {
    made.value = body;
    return made;
  }
  call_reader fields(body);
  made.failure.text = fields.text();
  made.failure.signature = fields.text();
  const std::uint64_t family = fields.unsigned_integer(static_cast<unsigned>(code_family::generic));
  const std::int64_t value =
      fields.integer(std::numeric_limits<int>::min(), std::numeric_limits<int>::max());
  made.failure.code = code_of_family(family, static_cast<int>(value));
  if (made.failure.text.size() > longest_failure_text ||
      made.failure.signature.size() > call_signature::max_size) {
    fields.fail("a text is too long");
  }
  std::error_code ec;
  fields.finish(ec);
  if (ec) return failure{errc::protocol_error, fields.why()};
  return made;
}

}  // namespace ucx::detail
