// The other side of the tests of plain peers, as an object (plain_peer.cpp), and this side.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support/bytes/hex.hpp"
#include "support/process/child_process.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/remote_descriptor.hpp"
#include "ucx/socket_address.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {

inline constexpr std::size_t plain_size = 1'000'000;

/// Returns the words between commas.
inline std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream rest(list);
  for (std::string each; std::getline(rest, each, ',');) parts.push_back(each);
  return parts;
}

/// Returns the options of a context that has only these transports; TCP on the loopback.
inline context_options only_over(std::vector<std::string> transports) {
  context_options made;
  made.transports = std::move(transports);
  if (made.transports.front() == "tcp") made.devices = {"lo"};
  return made;
}

/// A process that exposes memory by UCX's calls, and what it told of itself.
class plain_owner {
 public:
  plain_owner(const std::string& transports, const std::string& where, const std::string& memory,
              std::size_t size = plain_size)
      : process_(sibling_program("ucxio-plain-peer"),
                 {transports, where, memory, std::to_string(size)}),
        size_(size) {
    std::istringstream told(process_.read_line(std::chrono::seconds(30)).value_or("nothing"));
    std::string ready;
    std::string key;
    told >> ready >> where_ >> key >> std::hex >> base_;
    EXPECT_EQ(ready, "ready") << told.str();
    key_ = from_hex(key);
  }

  std::string ask(const std::string& line) {
    process_.write_line(line);
    return process_.read_line(std::chrono::seconds(30)).value_or("no answer");
  }
  child_process& process() noexcept { return process_; }
  /// Returns the address in digits, or HOST:PORT.
  std::string where() const { return where_.size() > 5 ? where_ : "127.0.0.1:" + where_; }
  worker_address address() const { return worker_address::from_native(from_hex(where_)); }
  socket_address listens() const { return socket_address(where()); }
  remote_descriptor descriptor(access granted = access::read_write) const {
    return remote_descriptor::of_key(base_, size_, key_, granted);
  }

 private:
  child_process process_;
  std::size_t size_;
  std::string where_;
  std::vector<std::byte> key_;
  std::uint64_t base_ = 0;
};

/// This side.
struct plain_reader {
  explicit plain_reader(std::vector<std::string> transports, worker_options options = {})
      : parent(only_over(std::move(transports))), driven(parent, options) {}

  endpoint connect(const worker_address& peer) {
    endpoint made(driven, peer, {.plain_peer = true});
    made.wait_connected();
    return made;
  }

  context parent;
  worker driven;
};

}  // namespace ucx::test
