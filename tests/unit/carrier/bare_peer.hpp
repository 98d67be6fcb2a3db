// A peer that is one end of a pair of sockets: a test writes its bytes.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <ucp/api/ucp.h>

#include <utility>

#include "base/owned_descriptor.hpp"
#include "carrier/carrier_endpoint.hpp"
#include "carrier/carrier_listener.hpp"
#include "carrier/carrier_worker.hpp"

namespace ucx::test {

inline std::pair<detail::owned_descriptor, detail::owned_descriptor> pair_of_sockets() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  return {detail::owned_descriptor(ends[0]), detail::owned_descriptor(ends[1])};
}

/// Accepts a peer as one of that family. Returns the peer's end.
inline detail::owned_descriptor accept_bare_peer(detail::carrier_worker& worker,
                                                 const ucp_ep_params_t& params,
                                                 ::sa_family_t family,
                                                 detail::carrier_endpoint*& made) {
  auto [peer, socket] = pair_of_sockets();
  detail::carrier_caller caller;
  caller.socket = std::move(socket);
  caller.address.ss_family = family;
  EXPECT_EQ(detail::carrier_endpoint::accept(worker, caller, params, made), UCS_OK);
  return std::move(peer);
}

}  // namespace ucx::test
