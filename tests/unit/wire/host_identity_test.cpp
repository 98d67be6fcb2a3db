#include "wire/host_identity.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "wire/wire.hpp"

namespace ucx::detail {
namespace {

TEST(HostIdentity, IsThatOfTheHostAndNoOther) {
  EXPECT_EQ(host_identity(), host_identity());
  EXPECT_NE(host_identity(), host_number());
}

TEST(HostIdentity, TravelsInAnEnvelope) {
  const std::vector<std::byte> wire = encode_host(host_identity());
  EXPECT_EQ(wire.size(), envelope::overhead + 16);
  EXPECT_EQ(decode_host(wire), host_identity());
  EXPECT_FALSE(decode_host({}));
}

TEST(HostIdentity, IsNotReadWhereItIsDamagedOrUnknown) {
  const std::vector<std::byte> wire = encode_host(host_identity());
  for (std::size_t i = 0; i < wire.size(); ++i) {
    std::vector<std::byte> damaged = wire;
    damaged[i] ^= std::byte{0x10};
    EXPECT_FALSE(decode_host(damaged)) << i;
    EXPECT_FALSE(decode_host(std::span(wire).first(i))) << i;
  }
  wire_writer longer = envelope::begin(host_letters);
  longer.put(std::vector<std::byte>(17, std::byte{1}));
  EXPECT_FALSE(decode_host(envelope::end(std::move(longer))));
  EXPECT_FALSE(decode_host(encode_host({}))) << "a host that could not be found out";
}

}  // namespace
}  // namespace ucx::detail
