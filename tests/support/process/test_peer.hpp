// The other process of a process test, as an object: see process/test_peer.cpp for its commands.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "support/bytes/hex.hpp"
#include "support/process/child_process.hpp"
#include "support/transports/network.hpp"
#include "ucx/remote_descriptor.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::test {

/// Every wait for an answer is bounded.
class test_peer {
 public:
  /// Starts the peer: "tcp" or "shared"; "caller", "polling" or "sleeping". Its first command waits
  /// until it has started, so that several can start at once.
  explicit test_peer(const std::string& plane, const std::string& mode = "sleeping")
      : process_(sibling_program("ucxio-test-peer"), {plane, mode}) {}
  /// Talks to a peer that was started in some other way.
  explicit test_peer(child_process started) : process_(std::move(started)) {}

  child_process& process() noexcept { return process_; }

  /// Sends a command and returns what follows "ok" in the answer.
  std::string ask(const std::string& command) {
    say(command);
    const std::optional<std::string> line = answer();
    EXPECT_TRUE(line && line->starts_with("ok")) << command << ": " << line.value_or("no answer");
    return line && line->size() > 3 ? line->substr(3) : std::string();
  }
  /// Sends a command that may fail, and returns the whole answer.
  std::string try_to(const std::string& command) {
    say(command);
    return answer().value_or("no answer");
  }

  /// Sends a command whose answer is for `hear()`, or for nobody.
  void say(const std::string& command) {
    if (!started_) {
      EXPECT_TRUE(answer().has_value()) << "the other process did not start";
      started_ = true;
    }
    process_.write_line(command);
  }

  /// Waits for the answer to what was said before, and returns the whole.
  std::string hear() { return answer().value_or("no answer"); }

  socket_address listen() { return socket_address(ask("listen " + at_port())); }
  remote_descriptor allocate(std::uint64_t size, std::uint64_t seed = 1) {
    return remote_descriptor::decode(
        from_hex(ask("allocate " + std::to_string(size) + " read_write " + std::to_string(seed))));
  }

 private:
  std::optional<std::string> answer() {
    return process_.read_line(patience(std::chrono::seconds(30)));
  }

  child_process process_;
  bool started_ = false;
};

}  // namespace ucx::test
