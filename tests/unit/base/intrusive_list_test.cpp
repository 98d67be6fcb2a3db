#include "base/intrusive_list.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <random>
#include <vector>

namespace ucx::detail {
namespace {

struct first_tag {};
struct second_tag {};

struct element : list_hook<first_tag>, list_hook<second_tag> {
  int number = 0;
  bool in_first() const { return list_hook<first_tag>::linked(); }
  bool in_second() const { return list_hook<second_tag>::linked(); }
};

using first_list = intrusive_list<element, first_tag>;
using second_list = intrusive_list<element, second_tag>;

template <class List>
std::vector<int> contents(const List& list) {
  std::vector<int> numbers;
  for (element* each = list.front(); each != nullptr; each = list.next(*each)) {
    numbers.push_back(each->number);
  }
  return numbers;
}

class IntrusiveList : public testing::Test {
 protected:
  IntrusiveList() {
    for (std::size_t i = 0; i < elements_.size(); ++i) elements_[i].number = static_cast<int>(i);
  }
  void add_all() {
    for (element& each : elements_) list_.push_back(each);
  }

  std::array<element, 5> elements_;
  first_list list_;
};

TEST_F(IntrusiveList, BeginsEmpty) {
  EXPECT_TRUE(list_.empty());
  EXPECT_EQ(list_.size(), 0U);
  EXPECT_EQ(list_.front(), nullptr);
}

TEST_F(IntrusiveList, KeepsTheOrderOfAdding) {
  add_all();
  EXPECT_EQ(contents(list_), (std::vector{0, 1, 2, 3, 4}));
  EXPECT_EQ(list_.size(), 5U);
}

TEST_F(IntrusiveList, AddsInFrontToo) {
  list_.push_front(elements_[1]);
  list_.push_back(elements_[2]);
  list_.push_front(elements_[0]);
  EXPECT_EQ(contents(list_), (std::vector{0, 1, 2}));
  EXPECT_EQ(list_.size(), 3U);
  list_.remove(elements_[0]);
  EXPECT_EQ(list_.front(), &elements_[1]);
}

TEST_F(IntrusiveList, RemovesAtBothEndsAndInTheMiddle) {
  add_all();
  for (const std::size_t index : {2U, 0U, 4U}) {
    list_.remove(elements_[index]);
    EXPECT_FALSE(elements_[index].in_first());
  }
  EXPECT_EQ(contents(list_), (std::vector{1, 3}));
  list_.remove(elements_[1]);
  list_.remove(elements_[3]);
  EXPECT_TRUE(list_.empty());
  EXPECT_EQ(list_.size(), 0U);
}

TEST_F(IntrusiveList, TakesARemovedElementAgain) {
  add_all();
  list_.remove(elements_[0]);
  list_.push_back(elements_[0]);
  EXPECT_EQ(contents(list_), (std::vector{1, 2, 3, 4, 0}));
}

TEST_F(IntrusiveList, ElementIsInOneListATag) {
  second_list other;
  list_.push_back(elements_[0]);
  list_.push_back(elements_[1]);
  other.push_back(elements_[1]);
  EXPECT_FALSE(elements_[0].in_second());
  list_.remove(elements_[1]);
  EXPECT_TRUE(elements_[1].in_second());
  EXPECT_EQ(contents(other), std::vector{1});
  EXPECT_EQ(contents(list_), std::vector{0});
}

TEST_F(IntrusiveList, AgreesWithAVectorUnderRandomUse) {
  std::mt19937 random(11);
  std::vector<int> model;
  for (int round = 0; round < 5000; ++round) {
    element& chosen = elements_[random() % elements_.size()];
    if (chosen.in_first()) {
      list_.remove(chosen);
      model.erase(std::find(model.begin(), model.end(), chosen.number));
    } else {
      list_.push_back(chosen);
      model.push_back(chosen.number);
    }
    ASSERT_EQ(contents(list_), model);
    ASSERT_EQ(list_.size(), model.size());
  }
}

}  // namespace
}  // namespace ucx::detail
