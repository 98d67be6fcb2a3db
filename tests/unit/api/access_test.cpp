#include "ucx/access.hpp"

#include <gtest/gtest.h>

namespace ucx {
namespace {

TEST(Access, IncludesItselfAndItsParts) {
  EXPECT_TRUE(includes(access::read_write, access::read));
  EXPECT_TRUE(includes(access::read_write, access::write));
  EXPECT_TRUE(includes(access::read_write, access::read_write));
  EXPECT_TRUE(includes(access::read, access::read));
  EXPECT_FALSE(includes(access::read, access::write));
  EXPECT_FALSE(includes(access::write, access::read));
  EXPECT_FALSE(includes(access::read, access::read_write));
}

}  // namespace
}  // namespace ucx
