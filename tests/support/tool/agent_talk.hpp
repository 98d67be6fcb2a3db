// What a server's agent and its clients say to each other, byte by byte.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "ucx/pipe_stream.hpp"

namespace ucx::test {

inline std::string as_length(std::uint32_t length) {
  std::string bytes;
  for (unsigned shift = 0; shift < 32; shift += 8) {
    bytes.push_back(static_cast<char>(length >> shift & 0xffU));
  }
  return bytes;
}

/// Returns a message as it is on the pipe.
inline std::string agent_bytes(const std::string& header, const std::string& payload = {}) {
  return as_length(static_cast<std::uint32_t>(header.size())) +
         as_length(static_cast<std::uint32_t>(payload.size())) + header + payload;
}

/// A conversation between an agent and a client, of which the test is one.
class agent_talk {
 public:
  /// Calls the agent of a server.
  static agent_talk with_agent(const std::string& server) {
    const std::string name = "0123456789abcdef0123456789abcdef";
    opipestream call(server + "/.ucxio-agent");
    call << name;
    call.close();
    EXPECT_FALSE(call.fail()) << call.error_message();
    return agent_talk(server, name);
  }
  /// Waits, as the agent of a server, for the next client.
  static agent_talk with_client(const std::string& server) {
    std::string name(32, '\0');
    ipipestream(server + "/.ucxio-agent").read(name.data(), 32);
    return agent_talk(server, name);
  }

  void say(const std::string& bytes) { *pipe_ << bytes << std::flush; }
  /// Returns the header of the next message; nothing where the conversation has ended.
  std::optional<nlohmann::json> hear() {
    pipe_->clear();  // who has answered may have left before it was said whole
    const std::size_t of_header = hear_length();
    payload.resize(hear_length());
    std::string header(of_header, '\0');
    pipe_->read(header.data(), static_cast<std::streamsize>(header.size()));
    pipe_->read(payload.data(), static_cast<std::streamsize>(payload.size()));
    if (!*pipe_) return std::nullopt;
    return nlohmann::json::parse(header, nullptr, false);
  }

  std::string payload;  ///< Of the last message.

 private:
  agent_talk(const std::string& server, const std::string& name) {
    pipe_options bounded;
    bounded.timeout = std::chrono::seconds(20);
    pipe_ = std::make_unique<pipestream>(server + "/.ucxio-agent/" + name, bounded);
    EXPECT_TRUE(pipe_->is_open()) << pipe_->error_message();
  }
  std::size_t hear_length() {
    std::string bytes(4, '\0');
    std::size_t length = 0;
    if (!pipe_->read(bytes.data(), 4)) return 0;
    for (unsigned i = 4; i-- > 0;) length = length << 8U | static_cast<unsigned char>(bytes[i]);
    return length;
  }

  std::unique_ptr<pipestream> pipe_;
};

}  // namespace ucx::test
