#include "base/part_table.hpp"

#include <gtest/gtest.h>

namespace ucx::detail {
namespace {

struct owner {
  int number = 0;
};

struct plain {
  int value = 7;
};

struct owned {
  explicit owned(owner& by) : of(by) {}
  owner& of;
};

struct ending {
  explicit ending(owner& by) : of(by) {}
  ~ending() { ++of.number; }
  ending(const ending&) = delete;
  ending& operator=(const ending&) = delete;
  owner& of;
};

// As an object that is made before main() begins may ask for them.
part_table<owner> early;
owner early_owner;
const int early_value = early.get<plain>(early_owner).value;

TEST(PartTable, HasOneOfEachType) {
  part_table<owner> parts;
  owner by;
  plain& first = parts.get<plain>(by);
  EXPECT_EQ(first.value, 7);
  EXPECT_EQ(&parts.get<owned>(by).of, &by);
  EXPECT_EQ(&parts.get<plain>(by), &first);
}

TEST(PartTable, IsItsOwnersAlone) {
  part_table<owner> parts;
  part_table<owner> others;
  owner by;
  EXPECT_NE(&parts.get<plain>(by), &others.get<plain>(by));
}

TEST(PartTable, EndsWhatItMade) {
  owner by;
  {
    part_table<owner> parts;
    parts.get<ending>(by);
    parts.get<ending>(by);
  }
  EXPECT_EQ(by.number, 1);
}

TEST(PartTable, IsThereBeforeMainBegins) {
  EXPECT_EQ(early_value, 7);
  EXPECT_EQ(early.get<plain>(early_owner).value, 7);
}

}  // namespace
}  // namespace ucx::detail
