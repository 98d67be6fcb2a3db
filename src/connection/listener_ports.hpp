// The TCP ports by which peers of a listener come, looked after.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "connection/port_guard.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::detail {

class worker_core;

/// Guards the listener's own sockets, and those by which data come to its workers. The log tells
/// of ports that can not be guarded. Where it ends, it waits for the guard's thread.
class listener_ports {
 public:
  /// See `port_guard::listeners`.
  struct listeners {
    std::function<void(const guarded_port&)> lost;
    std::function<void(std::vector<std::uint64_t> numbers)> overdue;
  };

  /// Of the listener at `address`, whose own sockets are `own`. REQUIRES: `worker` outlives it.
  listener_ports(worker_core& worker, const socket_address& address, std::vector<guarded_port> own,
                 listeners told);
  listener_ports(const listener_ports&) = delete;
  listener_ports& operator=(const listener_ports&) = delete;

  /// Guards the ports of these workers, too.
  void add(const std::vector<std::weak_ptr<worker_core>>& others);

 private:
  void add_data_ports(worker_core& of, std::vector<guarded_port>& to);
  void log_unguarded(const std::string& which);

  worker_core& worker_;
  const std::string address_;
  std::unique_ptr<port_guard> guard_;
};

}  // namespace ucx::detail
