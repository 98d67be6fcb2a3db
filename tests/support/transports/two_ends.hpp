// Both ends of one connection, which a worker has with itself.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "support/bytes/pattern.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"

namespace ucx::test {

/// Sends `from` one end `to` the other, and reads and writes by it what the context exposes.
inline void expect_carries(context& here, endpoint& from, endpoint& to) {
  for (const std::size_t size : {std::size_t{10}, std::size_t{400'000}}) {
    const std::vector<std::byte> said = pattern(size, 1);
    std::vector<std::byte> heard(size);
    request hearing = to.start_stream_receive(heard, stream_amount::all);
    request saying = from.start_stream_send(said);
    hearing.wait();
    saying.wait();
    EXPECT_TRUE(heard == said) << size;
  }
  memory_region owned = memory_region::allocate(here, 400'000, access::read_write);
  remote_region_options options;
  options.transfer_method = transfer_method::message;
  remote_region region(from, owned.descriptor(), options);
  const std::vector<std::byte> written = pattern(owned.size(), 2);
  region.write_at(0, written);
  region.flush();
  EXPECT_TRUE(holds_pattern(owned.bytes(), 2));
  std::vector<std::byte> into(owned.size());
  region.read_at(0, into);
  EXPECT_TRUE(into == written);
}

}  // namespace ucx::test
