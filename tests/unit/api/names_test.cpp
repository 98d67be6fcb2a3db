// The names of small enumerations, as users see them.
#include <gtest/gtest.h>

#include "ucx/access.hpp"
#include "ucx/memory_kind.hpp"
#include "ucx/way.hpp"

namespace ucx {
namespace {

TEST(MemoryKind, HasAName) {
  EXPECT_EQ(to_string(memory_kind::host), "host");
  EXPECT_EQ(to_string(memory_kind::cuda), "cuda");
  EXPECT_EQ(to_string(memory_kind::cuda_managed), "cuda_managed");
  EXPECT_EQ(to_string(memory_kind::rocm), "rocm");
  EXPECT_EQ(to_string(memory_kind::cuda_pinned), "cuda_pinned");
  EXPECT_EQ(to_string(memory_kind::other), "other");
  EXPECT_EQ(to_string(static_cast<memory_kind>(77)), "other");
}

TEST(Way, HasAName) {
  EXPECT_EQ(to_string(way::automatic), "automatic");
  EXPECT_EQ(to_string(way::message), "message");
  EXPECT_EQ(to_string(way::rma), "rma");
  EXPECT_EQ(to_string(way::cma), "cma");
  EXPECT_EQ(to_string(way::cuda_ipc), "cuda_ipc");
  EXPECT_EQ(to_string(static_cast<way>(77)), "unknown");
}

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
