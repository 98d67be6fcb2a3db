#include "base/pool.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <vector>

namespace ucx::detail {
namespace {

struct counted {
  counted() { ++living; }
  ~counted() { --living; }
  counted(const counted&) = delete;
  counted& operator=(const counted&) = delete;
  static inline int living = 0;
};

TEST(Pool, GivesBackTheSameObject) {
  pool<counted> objects;
  counted* const first = objects.take();
  objects.give_back(first);
  EXPECT_EQ(objects.take(), first);
  objects.give_back(first);
  EXPECT_EQ(counted::living, 1);
}

TEST(Pool, GivesDistinctObjects) {
  pool<counted> objects;
  std::set<counted*> taken;
  for (int i = 0; i < 100; ++i) taken.insert(objects.take());
  EXPECT_EQ(taken.size(), 100U);
  for (counted* each : taken) objects.give_back(each);
}

TEST(Pool, KeepsNoMoreThanItWasTold) {
  pool<counted> objects(3);
  std::vector<counted*> taken;
  for (int i = 0; i < 10; ++i) taken.push_back(objects.take());
  for (counted* each : taken) objects.give_back(each);
  EXPECT_EQ(counted::living, 3);
}

TEST(Pool, FreesItsObjects) {
  {
    pool<counted> objects;
    std::vector<counted*> taken;
    for (int i = 0; i < 10; ++i) taken.push_back(objects.take());
    for (counted* each : taken) objects.give_back(each);
    EXPECT_EQ(counted::living, 10);
  }
  EXPECT_EQ(counted::living, 0);
}

}  // namespace
}  // namespace ucx::detail
