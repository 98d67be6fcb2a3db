// Two processes that are driven by raw calls: for the tests of the fake itself.
#pragma once

#include <gtest/gtest.h>

#include <list>
#include <string>

#include "support/fake_ucp/fake_network.hpp"
#include "support/simulated/raw_peer.hpp"

namespace ucx::test {

/// An owner that exposes `region`, and a reader that is connected to it.
struct raw_pair {
  explicit raw_pair(fake_network& network)
      : owner(network, "owner"),
        reader(network, "reader"),
        memory(owner.map(region.data(), region.size())),
        endpoint(reader.connect(owner.address())),
        key(reader.unpack(endpoint, owner, memory)) {}
  ~raw_pair() {
    reader.api.rkey_destroy(key);
    reader.close(endpoint);
    EXPECT_EQ(owner.api.mem_unmap(owner.context, memory), UCS_OK);
  }

  raw_pair(const raw_pair&) = delete;
  raw_pair& operator=(const raw_pair&) = delete;

  /// Starts to read the first four bytes into a new string.
  outcome& get() {
    return reader.get(endpoint, into.emplace_back(4, ' ').data(), 4, region.data(), key);
  }

  std::string region = "remote";
  std::list<std::string> into;
  raw_peer owner;
  raw_peer reader;
  ucp_mem_h memory;
  ucp_ep_h endpoint;
  ucp_rkey_h key;
};

}  // namespace ucx::test
