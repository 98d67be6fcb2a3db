#include "base/renamed_variable.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace ucx::detail {
namespace {

constexpr const char* now = "UCXIO_TEST_NOW";
constexpr const char* before = "UCXIO_TEST_BEFORE";

class RenamedVariable : public ::testing::Test {
 protected:
  void TearDown() override {
    ::unsetenv(now);
    ::unsetenv(before);
  }
};

TEST_F(RenamedVariable, IsEmptyWhereNeitherIsSet) {
  const renamed_variable found(now, before);
  EXPECT_STREQ(found.name, now);
  EXPECT_STREQ(found.value, "");
}

TEST_F(RenamedVariable, HasTheOldNameWhereTheNewOneIsEmpty) {
  ::setenv(now, "", 1);
  ::setenv(before, "old", 1);
  const renamed_variable found(now, before);
  EXPECT_STREQ(found.name, before);
  EXPECT_STREQ(found.value, "old");
}

TEST_F(RenamedVariable, HasTheNewNameWhereBothAreSet) {
  ::setenv(now, "new", 1);
  ::setenv(before, "old", 1);
  const renamed_variable found(now, before);
  EXPECT_STREQ(found.name, now);
  EXPECT_STREQ(found.value, "new");
}

}  // namespace
}  // namespace ucx::detail
