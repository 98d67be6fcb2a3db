#include "base/pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <vector>

#include "connection/piece_shelf.hpp"

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

TEST(PieceShelf, KeepsTheCopiesOfFewIdlePieces) {
  staging_shelf staging(0, 4096, 4096);
  piece_shelf shelf(staging);
  std::vector<sent_piece*> all;
  for (int i = 0; i < 100; ++i) {
    all.push_back(&shelf.take());
    all.back()->copy.resize(1000);
  }
  for (sent_piece* const each : all) shelf.give_back(*each);
  EXPECT_EQ(std::count_if(all.begin(), all.end(),
                          [](const sent_piece* each) { return each->copy.capacity() > 0; }),
            64);
}

}  // namespace
}  // namespace ucx::detail
