// Addresses of the simulated machine.
#pragma once

#include "ucx/socket_address.hpp"

namespace ucx::test {

inline const socket_address any_port("127.0.0.1:0");
/// Nobody listens there.
inline const socket_address nobody("127.0.0.1:39999");

}  // namespace ucx::test
