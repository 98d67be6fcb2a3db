// The ports by which a worker's data come over TCP.
#pragma once

#include <string>
#include <vector>

#include "connection/port_guard.hpp"

namespace ucx::detail {

class worker_core;

struct data_ports {
  std::vector<guarded_port> found;
  std::string why_none;  ///< Where there should be some.
};

data_ports data_ports_of(worker_core& some);

/// Returns whether a worker has transports by which others reach a port.
bool uses_tcp(const worker_core& some) noexcept;

}  // namespace ucx::detail
