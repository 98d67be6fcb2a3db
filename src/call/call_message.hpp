// The bytes of calls and answers: docs/reference/calls.md, "Wire form".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/result.hpp"
#include "ucx/content_digest.hpp"

namespace ucx::detail {

inline constexpr std::uint8_t call_version = 1;

/// A call by name. It refers to the bytes that it was read from.
struct call_request {
  std::string_view name;
  content_digest hash;  ///< Of the signature that the caller knows.
  std::span<const std::byte> arguments;
};

std::vector<std::byte> encode_request(const call_request& request);
/// Errors: protocol_error; version_mismatch.
result<call_request> decode_request(std::span<const std::byte> wire);

/// How a call ended, as its answer says. Numbers of the wire.
enum class call_outcome : std::uint16_t {
  done = 0,
  bad_call = 1,  ///< No call, or one of another version.
  unknown_function = 2,
  signature_differs = 3,
  bad_arguments = 4,
  handler_failed = 5,
  result_too_large = 6,
};
inline constexpr call_outcome last_call_outcome = call_outcome::result_too_large;

/// Why there is no result.
struct call_failure {
  call_outcome outcome = call_outcome::bad_call;
  std::string text = {};
  std::string signature = {};  ///< Of `signature_differs`: the callee's.
  std::error_code code = {};   ///< Of `handler_failed`: what was thrown, if it had a code.
};

/// Bytes of the text of a failure at most. A longer one is cut.
inline constexpr std::size_t longest_failure_text = 1024;

std::vector<std::byte> encode_result(std::span<const std::byte> value);
std::vector<std::byte> encode_failure(const call_failure& failure);

struct call_answer {
  call_failure failure;              ///< Its outcome is `done` where there is a result.
  std::span<const std::byte> value;  ///< The result, in the bytes that were read.
};
/// Errors: protocol_error; version_mismatch.
result<call_answer> decode_answer(std::span<const std::byte> wire);

}  // namespace ucx::detail
