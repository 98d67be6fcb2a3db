// A server whose options name no transport, in a build without OpenSSL.
#include <array>
#include <cstddef>
#include <string>
#include <system_error>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(ServerWithoutTls, ServesThisUserByAUnixSocket) {
  for (const char* const each : {"localhost:0", "[::1]:0"}) {
    EXPECT_THAT(server({.bind = each}).url(), StartsWith("ucx+unix://")) << each;
  }
  server served;
  EXPECT_THAT(served.url(), StartsWith("ucx+unix://"));
  std::array<std::byte, 8> bytes = {};
  const publication shown = served.publish("x", bytes, access::read);
  EXPECT_EQ(client(served.url()).list().size(), 1U);
}

TEST(ServerWithoutTls, ServesAtNoPortUnlessATransportIsNamed) {
  for (const char* const each : {"127.0.0.1:1", "0.0.0.0:0"}) {
    try {
      const server made({.bind = each});
      ADD_FAILURE() << each;
    } catch (const error& failed) {
      EXPECT_EQ(failed.code(), errc::not_supported) << each;
      EXPECT_THAT(failed.what(), HasSubstr("without OpenSSL"));
      EXPECT_THAT(failed.what(), HasSubstr("--ucx"));
    }
  }
}

}  // namespace
}  // namespace ucx::test
