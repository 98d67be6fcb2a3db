#include "pipes/pipe_slots.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>

namespace ucx::test {
namespace {

using detail::pipe_slots;

constexpr std::size_t count = 20;
constexpr std::size_t slot_size = 1000;

TEST(PipeSlots, FillsTheFirstFewWhileReadersReceiveAtOnce) {
  pipe_slots slots(false);
  slots.open(count, slot_size);
  std::size_t few = 0;
  for (std::size_t next = 0; (next = slots.find_free(true)) != pipe_slots::none; ++few) {
    EXPECT_EQ(next, few);
    slots.lend(next);
  }
  EXPECT_GT(few, 0U);
  EXPECT_LT(few, count);
  EXPECT_EQ(slots.find_free(false), few) << "the others are for programs that do not read";
  slots.take_back(3);
  EXPECT_EQ(slots.find_free(true), 3U);
}

TEST(PipeSlots, StaysInASlotThatNobodyReads) {
  pipe_slots slots(false);
  slots.open(count, slot_size);
  ASSERT_TRUE(slots.fill(1));
  EXPECT_EQ(slots.area().size(), slot_size);
  EXPECT_EQ(slots.filling(), 1U);
  slots.move_on();
  EXPECT_EQ(slots.area().size(), slot_size);
  slots.lend(1);
  slots.move_on();
  EXPECT_TRUE(slots.area().empty());
}

TEST(PipeSlots, CountsWhoReadsTheCallersMemory) {
  pipe_slots slots(false);
  slots.open(count, slot_size);
  for (const std::size_t from : {pipe_slots::callers, pipe_slots::copied, pipe_slots::callers}) {
    slots.lend(from);
  }
  EXPECT_EQ(slots.borrowed(), 2U);
  slots.take_back(pipe_slots::callers);
  slots.take_back(pipe_slots::copied);
  EXPECT_EQ(slots.borrowed(), 1U);
  slots.lend(0);
  slots.forget();
  EXPECT_EQ(slots.borrowed(), 0U);
  EXPECT_EQ(slots.find_free(true), 0U);
}

TEST(PipeSlots, GoesOnWithoutPlacesThatCanNotBeMapped) {
  pipe_slots slots(true);
  slots.use(std::nullopt);  // before it is known how many slots there are, and behind that
  slots.open(count, slot_size);
  slots.use(std::nullopt);
  EXPECT_FALSE(slots.uses_places());
  for (std::size_t i = 0; i < count; ++i) EXPECT_FALSE(slots.is_place(i));
  EXPECT_FALSE(slots.is_place(pipe_slots::callers));
  ASSERT_TRUE(slots.fill(0));
  slots.leave_places();
  EXPECT_TRUE(slots.area().empty());
  EXPECT_EQ(slots.find_free(false), 0U);
}

}  // namespace
}  // namespace ucx::test
