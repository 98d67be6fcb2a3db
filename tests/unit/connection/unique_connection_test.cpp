// `connection_terms::unique`: one connection between two workers, whichever side began.
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "support/simulated/simulated_address.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

TEST(UniqueConnection, MayBeTheOnlyOne) {
  simulated_pair pair;
  const connection_terms unique{.unique = true};
  const listener door(pair.owner, any_port);
  std::optional<endpoint> first(std::in_place, pair.reader, door.address(),
                                endpoint_options{.terms = unique});
  std::error_code ec;
  const endpoint second(pair.reader, door.address(), {.terms = unique}, ec);
  EXPECT_EQ(ec, errc::already_exists) << "found here";
  const listener other(pair.owner, any_port);
  const endpoint third(pair.reader, other.address(), {.terms = unique}, ec);
  EXPECT_EQ(ec, errc::already_exists) << "found by the peer, or by its welcome";
  const endpoint whatever(pair.reader, door.address(), {}, ec);
  EXPECT_FALSE(ec) << "nobody asked";
}

TEST(UniqueConnection, ListenerMayWantEachPeerOnce) {
  simulated_pair pair;
  listener_options doors;
  doors.terms = connection_terms{.unique = true};
  const listener door(pair.owner, any_port, std::move(doors));
  std::optional<endpoint> first(std::in_place, pair.reader, door.address());
  std::error_code ec;
  const endpoint second(pair.reader, door.address(), {}, ec);
  EXPECT_EQ(ec, errc::already_exists);
  first->close();
  pair.network.advance(2s);
  const endpoint third(pair.reader, door.address(), {}, ec);
  EXPECT_FALSE(ec);
}

TEST(UniqueConnection, MayBeTheOnlyOneWhicheverSideBegan) {
  const connection_terms unique{.unique = true};
  for (const bool by_address : {false, true}) {
    SCOPED_TRACE(by_address);
    simulated_pair pair;
    const listener door(pair.owner, any_port);
    const listener back(pair.reader, any_port);
    endpoint first(pair.reader, door.address());
    std::error_code ec;
    endpoint crossing = by_address ? endpoint(pair.owner, pair.reader.address(), {.terms = unique})
                                   : endpoint(pair.owner, back.address(),
                                              {.wait = connect_wait::none, .terms = unique});
    crossing.wait_connected(ec);
    EXPECT_EQ(ec, errc::already_exists);
    EXPECT_FALSE(first.status());
    first.close();
    pair.network.advance(2s);
    const endpoint later(pair.owner, back.address(), {.terms = unique}, ec);
    EXPECT_FALSE(ec);
  }
}

TEST(UniqueConnection, OneIsKeptOfTwoThatBeginAtOnce) {
  int kept_by_owner = 0;
  for (unsigned seed = 1; seed <= 16; ++seed) {
    SCOPED_TRACE(seed);
    simulated_pair_options sides;
    sides.seed = seed;
    simulated_pair pair(sides);
    const listener door(pair.owner, any_port);
    const listener back(pair.reader, any_port);
    const auto begin = [](const worker& from, const listener& to) {
      return endpoint(from, to.address(),
                      {.wait = connect_wait::none, .terms = connection_terms{.unique = true}});
    };
    const endpoint there = begin(pair.reader, door);
    const endpoint here = begin(pair.owner, back);
    pair.network.advance(3s);
    EXPECT_NE(!there.status(), !here.status());
    EXPECT_EQ((there.status() ? there : here).status(), errc::already_exists);
    EXPECT_EQ(pair.owner.connections(), 1U);
    EXPECT_EQ(pair.reader.connections(), 1U);
    if (!here.status()) ++kept_by_owner;
  }
  EXPECT_GT(kept_by_owner, 0) << "it depends on the numbers that the workers draw";
  EXPECT_LT(kept_by_owner, 16);
}

TEST(UniqueConnection, TwoAtOnceByAddressLeaveNoneInTheWay) {
  const connection_terms unique{.unique = true};
  simulated_pair pair;
  {
    const endpoint there(pair.reader, pair.owner.address(), {.terms = unique});
    const endpoint here(pair.owner, pair.reader.address(), {.terms = unique});
    pair.network.advance(3s);
    EXPECT_TRUE(there.status() == errc::already_exists || here.status() == errc::already_exists);
    EXPECT_LE(pair.owner.connections(), 1U);
    EXPECT_EQ(pair.reader.connections(), pair.owner.connections());
  }
  pair.network.advance(3s);
  endpoint later(pair.owner, pair.reader.address(), {.terms = unique});
  later.wait_connected();
}

TEST(UniqueConnection, OfAWorkerToItselfMayBeTheOnlyOne) {
  const connection_terms unique{.unique = true};
  simulated_pair pair;
  const listener door(pair.owner, any_port);
  const listener other(pair.owner, any_port);
  std::error_code ec;
  endpoint first(pair.owner, door.address(), {.terms = unique}, ec);
  EXPECT_FALSE(ec);
  const endpoint second(pair.owner, other.address(), {.terms = unique}, ec);
  EXPECT_EQ(ec, errc::already_exists);
  first.close();
}

}  // namespace
}  // namespace ucx::test
