#include "ucx/version.hpp"

#include <gtest/gtest.h>
#include <ucp/api/ucp.h>

#include "wire/protocol.hpp"

namespace ucx {
namespace {

TEST(Version, PrintsItsThreeNumbers) {
  EXPECT_EQ(to_string(version_number{1, 13, 2}), "1.13.2");
  EXPECT_EQ(to_string(version_number{}), "0.0.0");
}

TEST(Version, OrdersByMajorThenMinorThenPatch) {
  EXPECT_LT((version_number{1, 9, 9}), (version_number{1, 13, 0}));
  EXPECT_LT((version_number{1, 13, 1}), (version_number{1, 13, 2}));
  EXPECT_LT((version_number{0, 99, 99}), (version_number{1, 0, 0}));
  EXPECT_EQ((version_number{1, 2, 3}), (version_number{1, 2, 3}));
}

TEST(Version, OfTheLibraryIsTheBuilds) {
  EXPECT_EQ(version().major, 0U);
  EXPECT_GE(version(), (version_number{0, 1, 0}));
}

TEST(Version, OfTheTransportIsTheLoadedUcx) {
  version_number loaded;
  ucp_get_version(&loaded.major, &loaded.minor, &loaded.patch);
  EXPECT_EQ(ucx_version(), loaded);
  EXPECT_GE(ucx_version(), (version_number{1, 13, 0}));
}

TEST(Version, OfTheProtocolIsWhatGoesOverTheWire) {
  EXPECT_EQ(protocol_version(), 1U);
  EXPECT_EQ(protocol_version(), unsigned{detail::protocol_version_number});
}

}  // namespace
}  // namespace ucx
