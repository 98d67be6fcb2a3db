// An owner that is asked by hand, over the simulated network, for the same memory in every test.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/simulated/frame_peer.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/memory_region.hpp"
#include "wire/frame.hpp"

namespace ucx::test {

class asked_owner : public testing::Test {
 protected:
  explicit asked_owner(access granted = access::read_write, std::size_t size = 10'000)
      : memory_(pattern(size)),
        exposed_(pair_.owner_context, std::span<std::byte>(memory_), granted),
        peer_(pair_.network, "peer"),
        owner_(peer_.reach(pair_.owner.address())) {
    EXPECT_TRUE(peer_.open_session(owner_, session));
  }

  /// A question for the region, that of the session.
  detail::frame question(detail::opcode code, std::uint64_t offset, std::uint64_t length) {
    const remote_descriptor known = exposed_.descriptor();
    detail::frame asked;
    asked.code = code;
    asked.session = session;
    asked.request = ++last_request_;
    asked.region = known.region;
    asked.incarnation = known.incarnation;
    asked.generation = known.generation;
    asked.offset = offset;
    asked.length = length;
    return asked;
  }

  static constexpr std::uint64_t session = 0x5e5510;
  simulated_pair pair_;
  std::vector<std::byte> memory_;
  memory_region exposed_;
  frame_peer peer_;
  ucp_ep_h owner_;
  std::uint64_t last_request_ = 0;
};

}  // namespace ucx::test
