// The messages between an agent and its client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "output/exit_code.hpp"
#include "ucx/pipe_stream.hpp"

namespace ucx::tool {

/// Grows with what either side has to know to understand the other.
constexpr std::uint64_t agent_version = 1;

/// A header, which is a JSON object, and bytes. On the pipe: the length of either as a u32, little
/// endian, and then both.
struct agent_message {
  nlohmann::json header = nlohmann::json::object();
  std::vector<std::byte> payload = {};

  static constexpr std::size_t longest_header = std::size_t{64} << 10U;
  static constexpr std::size_t longest_payload = std::size_t{1} << 20U;
};

/// The other side sent no message, or not one that is expected: nothing behind it can be
/// understood.
class bad_message : public failure {
 public:
  explicit bad_message(const std::string& why);
};

/// Sends a message. Errors: failure, of the pipe, and with exit_code::usage where it is too long.
void send_message(pipe_streambuf& pipe, const nlohmann::json& header,
                  std::span<const std::byte> payload = {});
/// Returns the next message; nothing where the other side has ended well. Errors: failure, of the
/// pipe; bad_message.
std::optional<agent_message> receive_message(pipe_streambuf& pipe);

// Members of a header, of which nothing is known. Errors: bad_message, where there is none like
// that.

std::string text_in(const nlohmann::json& header, const char* member);
std::uint64_t number_in(const nlohmann::json& header, const char* member,
                        std::uint64_t most = ~std::uint64_t{0});
std::int64_t integer_in(const nlohmann::json& header, const char* member);
bool flag_in(const nlohmann::json& header, const char* member);
const nlohmann::json& object_in(const nlohmann::json& header, const char* member);
std::vector<std::string> texts_in(const nlohmann::json& header, const char* member,
                                  std::size_t most);
const nlohmann::json& objects_in(const nlohmann::json& header, const char* member,
                                 std::size_t most);

/// Returns a header that says that something failed.
nlohmann::json failed_header(const failure& why);
/// Throws what such a header says; does nothing with others.
void throw_failed(const nlohmann::json& header);

}  // namespace ucx::tool
