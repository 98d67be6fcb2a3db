// The further clients that a client has of the server: its lanes, and what takes its place.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

#include "base/result.hpp"
#include "client/client_slot.hpp"
#include "ucx/context.hpp"

namespace ucx::detail {

class client_core;
class known_server;

/// Knows how the client was connected, and connects as many times more as it is asked to. Keeps
/// none of them alive. A part of a client; safe from any thread.
class further_clients {
 public:
  explicit further_clients(const known_server& server) noexcept : server_(server) {}
  further_clients(const further_clients&) = delete;
  further_clients& operator=(const further_clients&) = delete;

  /// `again` connects as the client was connected, `beside` on a worker with a separate thread.
  /// Without them there are none. Before another thread has the client.
  void set_ways(client_slot::connector again, client_slot::connector beside);

  /// Returns the `number`th further connection to the server: see ucx::client.
  result<std::shared_ptr<client_core>> lane(std::size_t number);
  /// Returns `lost`, or what takes its place where its connection is lost.
  static result<std::shared_ptr<client_core>> successor(std::shared_ptr<client_core> lost);
  /// Its user has closed the client: nothing takes its place, whatever became of the connection.
  void close() noexcept { closed_ = true; }

 private:
  const process_stamp made_;
  const known_server& server_;
  client_slot::connector again_;
  client_slot::connector beside_;
  std::mutex lanes_mutex_;
  std::map<std::size_t, client_slot> lanes_;
  client_slot successor_;
  std::atomic<bool> closed_{false};
};

}  // namespace ucx::detail
