// Keys of meetings: each counts once, until its deadline. How they reach a listener, or a
// connection.
#include "carrier/meeting_book.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>

#include <gtest/gtest.h>

namespace ucx::detail {
namespace {

using namespace std::chrono_literals;

class MeetingBook : public testing::Test {
 protected:
  /// Returns what a peer shows that has this key.
  static meeting_secret shown(unsigned char number) {
    std::array<std::byte, 16> key = {};
    key.back() = std::byte{number};
    const std::optional<meeting_secret> made = secret_of(key);
    EXPECT_TRUE(made);
    return made.value_or(meeting_secret());
  }

  const std::shared_ptr<meeting_book> book_ = std::make_shared<meeting_book>();
  const meeting_book::clock::time_point later_ = meeting_book::clock::now() + 1h;
};

TEST_F(MeetingBook, HasOneSecretOnBothSides) {
  book_->expect(shown(1), later_);
  const auto expected = book_->expected(shown(1).identity);
  ASSERT_TRUE(expected);
  EXPECT_EQ(expected->secret, shown(1).secret);
  EXPECT_NE(shown(1).secret, shown(2).secret);
  EXPECT_FALSE(book_->expected(shown(2).identity));
  EXPECT_FALSE(book_->expected({}));
}

TEST_F(MeetingBook, LetsAKeyInOnce) {
  book_->expect(shown(1), later_);
  book_->expect(shown(2), later_);
  EXPECT_TRUE(book_->spend(shown(1).identity));
  EXPECT_FALSE(book_->spend(shown(1).identity));
  EXPECT_FALSE(book_->expected(shown(1).identity));
  EXPECT_TRUE(book_->expected(shown(2).identity));
}

TEST_F(MeetingBook, CountsAKeyUntilItsDeadline) {
  book_->expect(shown(1), meeting_book::clock::now() - 1ns);
  EXPECT_FALSE(book_->expected(shown(1).identity));
}

TEST_F(MeetingBook, ForgetsAll) {
  book_->expect(shown(1), later_);
  book_->clear();
  EXPECT_FALSE(book_->expected(shown(1).identity));
}

TEST_F(MeetingBook, IsTakenOnceWithinACall) {
  EXPECT_FALSE(meeting_scope::take_book());
  {
    const meeting_scope given({.expects = book_});
    EXPECT_FALSE(meeting_scope::take_key());
    EXPECT_EQ(meeting_scope::take_book(), book_);
    EXPECT_FALSE(meeting_scope::take_book());
  }
  { const meeting_scope not_taken({.expects = book_}); }
  EXPECT_FALSE(meeting_scope::take_book());
  EXPECT_EQ(book_.use_count(), 1);
}

TEST_F(MeetingBook, HasKeysForOneConnectionOfACall) {
  const meeting_scope outer({.shows = shown(1)});
  {
    const meeting_scope inner({.shows = shown(2)});
    const auto taken = meeting_scope::take_key();
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->identity, shown(2).identity);
    EXPECT_FALSE(meeting_scope::take_key());
  }
  const auto taken = meeting_scope::take_key();
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->identity, shown(1).identity);
}

TEST_F(MeetingBook, GoesThroughTheStructuresOfUcx) {
  ucp_listener_params_t listening = {};
  EXPECT_FALSE(given_in(listening));
  give(listening, *book_);
  EXPECT_EQ(given_in(listening), book_);
  ucp_ep_params_t connecting = {};
  EXPECT_EQ(given_in(connecting), nullptr);
  meeting_secret key = shown(1);
  give(connecting, key);
  EXPECT_EQ(given_in(connecting), &key);
}

}  // namespace
}  // namespace ucx::detail
