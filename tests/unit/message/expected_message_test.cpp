#include "message/expected_message.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace ucx::test {
namespace {

using detail::expected_message;
using detail::message_kind;
using detail::parcel;

parcel announcement(std::uint64_t length) {
  parcel said;
  said.code = detail::parcel_code::announce;
  said.kind = message_kind::active;
  said.number = 7;
  said.tag = 9;
  said.length = length;
  said.memory = memory_kind::cuda;
  return said;
}

TEST(ExpectedMessage, IsNotFoundUntilSomethingWasSaidOfIt) {
  expected_message message;
  message.begin();
  EXPECT_FALSE(message.is_found());
  EXPECT_EQ(message.info(), message_info());
  message.found(announcement(100));
  EXPECT_TRUE(message.is_found());
  EXPECT_EQ(message.info(), (message_info{9, 100, memory_kind::cuda}));
  EXPECT_EQ(message.kind(), message_kind::active);
  message.begin();
  EXPECT_FALSE(message.is_found());
  message.found(3, 5);
  EXPECT_EQ(message.info(), (message_info{3, 5, memory_kind::host}));
  EXPECT_EQ(message.kind(), message_kind::tagged);
}

/// The answer is found by number, and the rest is said again.
TEST(ExpectedMessage, AnswersRepeatWhatWasAnnounced) {
  expected_message message;
  message.begin();
  message.found(announcement(100));
  const parcel said = message.announced();
  EXPECT_EQ(said.kind, message_kind::active);
  EXPECT_EQ(said.number, 7U);
  EXPECT_EQ(said.tag, 9U);
  EXPECT_EQ(said.length, 100U);
}

TEST(ExpectedMessage, IsWholeWhenAllOfItHasCome) {
  expected_message message;
  message.begin();
  message.found(announcement(100));
  EXPECT_FALSE(message.received(60));
  EXPECT_FALSE(message.received(39));
  EXPECT_TRUE(message.received(1));
}

TEST(ExpectedMessage, LacksNoPieceBeyondItsEndOrItsLength) {
  expected_message message;
  message.begin();
  message.found(announcement(100));
  EXPECT_TRUE(message.lacks(0, 100));
  EXPECT_TRUE(message.lacks(99, 1));
  EXPECT_FALSE(message.lacks(0, 101));
  EXPECT_FALSE(message.lacks(99, 2));
  EXPECT_FALSE(message.lacks(101, 1));
  EXPECT_FALSE(message.lacks(std::numeric_limits<std::uint64_t>::max(), 2)) << "it wraps around";
  message.received(60);
  EXPECT_TRUE(message.lacks(0, 40));
  EXPECT_FALSE(message.lacks(0, 41)) << "more than is missing in all";
}

}  // namespace
}  // namespace ucx::test
