// What the parts of `ucxio-rdma-peer` share.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "ucx/client.hpp"

namespace ucx::test {

constexpr std::size_t memory_size = std::size_t{4} << 20U;
constexpr std::size_t half = memory_size / 2;  // the first is read, the second written
/// The number of an active message that asks the owner for messages of these sizes, one behind the
/// other: the tag of each is its place.
constexpr std::uint64_t ask_for_messages = 2;
constexpr std::array<std::size_t, 10> message_sizes{
    0, 16 << 20, 1, 1000, 3 << 20, 1025, 4096, 1 << 20, 100'000, (1 << 20) + 1};

/// What a peer does, with the words of its command line behind the verb.
struct verb {
  std::string_view name;
  void (*run)(const std::string& where);
};

inline void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("not so: " + what);
}

inline std::byte byte_at(std::size_t place) {
  return static_cast<std::byte>(place * 31 + place / 256);
}

/// Connects with patience: the processor may be emulated, on a busy machine.
inline client connect(const std::string& url, client_options options = {}) {
  options.worker.connect_timeout = std::chrono::seconds(60);
  options.worker.close_timeout = std::chrono::seconds(30);
  return client(url, options);
}

/// Opens a region by this way, whatever would be better.
remote_region open_by(client& server, const char* way, const char* name,
                      access wanted = access::read, std::error_code& ec = throws);

// crossing.cpp: what goes right.
void check_batches(const std::string& url);
void check_fences(const std::string& url);
void check_atomics(const std::string& url);
void check_notifications(const std::string& url);
void check_messages(const std::string& url);
void check_contexts(const std::string& url);
void write_pipe(const std::string& url);
void read_pipe(const std::string& url);

// endless.cpp: what is cut off. Each goes on until it fails, and prints how it ended.
void read_on(const std::string& url);
void write_on(const std::string& url);
void add_on(const std::string& url);
void send_on(const std::string& url);
void pipe_on(const std::string& url);
void drain_pipe(const std::string& url);

// key_rights.cpp
void write_with_readers_key(const std::string& where);

// plain.cpp
void use_plain_memory(const std::string& file);

}  // namespace ucx::test
