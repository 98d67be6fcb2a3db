#include "agent/agent_message.hpp"

#include <fmt/format.h>

#include <array>
#include <ios>

namespace ucx::tool {
namespace {

constexpr std::size_t longest_text = std::size_t{4} << 10U;

[[noreturn]] void fail(const pipe_streambuf& pipe) {
  throw failure(exit_code_of(pipe.error()), pipe.error_message());
}

void append_length(std::string& to, std::size_t length) {
  for (unsigned shift = 0; shift < 32; shift += 8) {
    to.push_back(static_cast<char>(length >> shift & 0xffU));
  }
}

std::size_t length_in(const char* from) {
  std::size_t length = 0;
  for (unsigned i = 4; i-- > 0;) length = length << 8U | static_cast<unsigned char>(from[i]);
  return length;
}

/// Fills `into`; returns false where the pipe has ended before its first byte.
bool read_all(pipe_streambuf& pipe, std::span<char> into) {
  const std::streamsize wanted = static_cast<std::streamsize>(into.size());
  const std::streamsize came = pipe.sgetn(into.data(), wanted);
  if (came == wanted) return true;
  if (pipe.error()) fail(pipe);
  if (came == 0) return false;
  throw bad_message("it ended within a message");
}

const nlohmann::json& member_of(const nlohmann::json& header, const char* member) {
  const auto found = header.find(member);
  if (found == header.end()) throw bad_message(fmt::format("there is no \"{}\"", member));
  return *found;
}

const nlohmann::json& list_in(const nlohmann::json& header, const char* member, std::size_t most) {
  const nlohmann::json& found = member_of(header, member);
  if (!found.is_array() || found.size() > most) {
    throw bad_message(fmt::format("\"{}\" is no list of {} at most", member, most));
  }
  return found;
}

exit_code code_in(const nlohmann::json& header) {
  const std::uint64_t code = number_in(header, "code", 255);
  const auto most = static_cast<std::uint64_t>(exit_code::no_space);
  const bool is_known =
      (code > 0 && code <= most) || code == static_cast<std::uint64_t>(exit_code::interrupted);
  return is_known ? static_cast<exit_code>(code) : exit_code::failure;
}

}  // namespace

bad_message::bad_message(const std::string& why)
    : failure(exit_code::no_connection,
              "an agent and its client do not understand each other: " + why) {}

void send_message(pipe_streambuf& pipe, const nlohmann::json& header,
                  std::span<const std::byte> payload) {
  const std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() > agent_message::longest_header ||
      payload.size() > agent_message::longest_payload) {
    throw failure(exit_code::usage, "more than an agent can be told at once");
  }
  std::string begin;
  append_length(begin, text.size());
  append_length(begin, payload.size());
  begin += text;
  const auto put = [&pipe](const char* from, std::size_t length) {
    const auto wanted = static_cast<std::streamsize>(length);
    if (pipe.sputn(from, wanted) != wanted) fail(pipe);
  };
  put(begin.data(), begin.size());
  put(reinterpret_cast<const char*>(payload.data()), payload.size());
  if (pipe.pubsync() != 0) fail(pipe);
}

std::optional<agent_message> receive_message(pipe_streambuf& pipe) {
  std::array<char, 8> lengths;
  if (!read_all(pipe, lengths)) return std::nullopt;
  const std::size_t of_header = length_in(lengths.data());
  const std::size_t of_payload = length_in(lengths.data() + 4);
  if (of_header == 0 || of_header > agent_message::longest_header ||
      of_payload > agent_message::longest_payload) {
    throw bad_message("no message is so long");
  }
  std::string text(of_header, '\0');
  agent_message came;
  came.payload.resize(of_payload);
  const std::span<char> payload(reinterpret_cast<char*>(came.payload.data()), of_payload);
  if (!read_all(pipe, text) || (of_payload > 0 && !read_all(pipe, payload))) {
    throw bad_message("it ended within a message");
  }
  came.header = nlohmann::json::parse(text, nullptr, false);
  if (!came.header.is_object()) throw bad_message("no JSON object");
  return came;
}

std::string text_in(const nlohmann::json& header, const char* member) {
  const nlohmann::json& found = member_of(header, member);
  if (!found.is_string()) throw bad_message(fmt::format("\"{}\" is no text", member));
  return found.get<std::string>();
}

std::uint64_t number_in(const nlohmann::json& header, const char* member, std::uint64_t most) {
  const nlohmann::json& found = member_of(header, member);
  if (!found.is_number_unsigned() || found.get<std::uint64_t>() > most) {
    throw bad_message(fmt::format("\"{}\" is no number from 0 to {}", member, most));
  }
  return found.get<std::uint64_t>();
}

std::int64_t integer_in(const nlohmann::json& header, const char* member) {
  const nlohmann::json& found = member_of(header, member);
  constexpr std::uint64_t most = ~std::uint64_t{0} >> 1U;
  const bool fits = !found.is_number_unsigned() || found.get<std::uint64_t>() <= most;
  if (!found.is_number_integer() || !fits) {
    throw bad_message(fmt::format("\"{}\" is no integer", member));
  }
  return found.get<std::int64_t>();
}

bool flag_in(const nlohmann::json& header, const char* member) {
  const nlohmann::json& found = member_of(header, member);
  if (!found.is_boolean())
    throw bad_message(fmt::format("\"{}\" is neither true nor false", member));
  return found.get<bool>();
}

const nlohmann::json& object_in(const nlohmann::json& header, const char* member) {
  const nlohmann::json& found = member_of(header, member);
  if (!found.is_object()) throw bad_message(fmt::format("\"{}\" is no object", member));
  return found;
}

std::vector<std::string> texts_in(const nlohmann::json& header, const char* member,
                                  std::size_t most) {
  std::vector<std::string> all;
  for (const nlohmann::json& each : list_in(header, member, most)) {
    if (!each.is_string()) throw bad_message(fmt::format("\"{}\" is no list of texts", member));
    all.push_back(each.get<std::string>());
  }
  return all;
}

const nlohmann::json& objects_in(const nlohmann::json& header, const char* member,
                                 std::size_t most) {
  const nlohmann::json& all = list_in(header, member, most);
  for (const nlohmann::json& each : all) {
    if (!each.is_object()) throw bad_message(fmt::format("\"{}\" is no list of objects", member));
  }
  return all;
}

nlohmann::json failed_header(const failure& why) {
  return {{"failed", std::string(why.what()).substr(0, longest_text)},
          {"code", static_cast<unsigned>(why.code())},
          {"ends_all", why.ends_all()}};
}

void throw_failed(const nlohmann::json& header) {
  if (!header.contains("failed")) return;
  throw failure(code_in(header), text_in(header, "failed"),
                flag_in(header, "ends_all") ? failure::reach::by_code : failure::reach::one_file);
}

}  // namespace ucx::tool
