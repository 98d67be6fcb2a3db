// The messages between the ends of a pipe and a broker: docs/reference/wire-format.md, "Meeting at
// a broker".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ucx/peer_address.hpp"

namespace ucx::detail {

/// Version 1 knows no worker addresses. Version 3 is of ends that connect by TLS, with the token
/// for a key; its messages are those of version 2. A question of one version gets an answer of that
/// version.
inline constexpr std::uint16_t oldest_meeting_version = 1;
inline constexpr std::uint16_t pipe_meeting_version = 2;
inline constexpr std::uint16_t keyed_meeting_version = 3;
/// The number of the active messages that ask, and the tag of their answers.
inline constexpr std::uint64_t pipe_question_number = 0x7563'7869'706d'6500U;
inline constexpr std::uint64_t pipe_answer_tag = pipe_question_number + 1;
/// The number of the active message by which who connected to a worker's address says so.
inline constexpr std::uint64_t pipe_knock_number = pipe_question_number + 2;

/// A worker's address with its envelope; UCX's are some hundred bytes, and grow with the devices.
inline constexpr std::size_t longest_pipe_worker = std::size_t{16} << 10U;

/// The role of one end of a pipe.
enum class pipe_role : std::uint8_t { reader = 1, writer = 2, both = 3 };

/// One end looks for others. An end that others may connect to says where: at one of both
/// addresses. A writer has none.
struct pipe_question {
  static constexpr std::size_t longest = longest_pipe_worker + 2048;
  std::uint16_t version = pipe_meeting_version;
  pipe_role role = pipe_role::reader;
  std::uint32_t wanted = 1;  ///< How many others; 1 to 1024.
  std::string name = {};
  std::string address = {};    ///< A socket address without names, where it listens.
  worker_address worker = {};  ///< Its worker's, where it has no IP address.
};

using pipe_token = std::array<std::byte, 16>;

/// Somebody was found: who has an address is to connect there, and to say the token.
struct pipe_answer {
  static constexpr std::size_t longest = longest_pipe_worker + 512;
  std::uint16_t version = pipe_meeting_version;
  std::uint32_t status = 0;  ///< 0, or the `errc` for which there will be no other end.
  pipe_token token{};
  // Where to connect to; both empty: the other one will connect.
  std::string address = {};
  worker_address worker = {};
};

std::vector<std::byte> encode(const pipe_question& said);
std::vector<std::byte> encode(const pipe_answer& said);

/// Return nothing for bytes that are no such message, or one of a version that is not known.
std::optional<pipe_question> decode_pipe_question(std::span<const std::byte> said);
std::optional<pipe_answer> decode_pipe_answer(std::span<const std::byte> said);

}  // namespace ucx::detail
