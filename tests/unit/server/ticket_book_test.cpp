// The tickets that a server took for its clients.
#include "server/ticket_book.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

using testing::ElementsAre;

ticket_secret secret_with(std::uint8_t number) {
  ticket_secret made = {};
  made.back() = std::byte{number};
  return made;
}

/// A book of two clients.
class TicketBook : public testing::Test {
 protected:
  TicketBook() {
    book_.enter(alice, identity_);
    book_.enter(bob, std::make_shared<const peer_identity>());
  }
  std::error_code add(std::uint8_t number) {
    return book_.add(secret_with(number), std::array{alice, bob}, {});
  }

  std::optional<ticket_book::grant> take(std::uint8_t number) {
    return book_.take(secret_with(number), agent);
  }

  static constexpr ticket_book::connection alice{1, 7};
  static constexpr ticket_book::connection bob{2, 7};
  static constexpr ticket_book::connection agent{1, 8};
  const ticket_book::identity identity_ =
      std::make_shared<const peer_identity>(peer_identity{.token = "alice"});
  ticket_book book_;
};

TEST_F(TicketBook, GivesWhatATicketStandsForOnce) {
  EXPECT_FALSE(book_.add(secret_with(1), std::array{alice, bob}, {access_right::agent, "name"}));
  EXPECT_EQ(take(2), std::nullopt);
  const std::optional<ticket_book::grant> taken = take(1);
  ASSERT_TRUE(taken);
  EXPECT_THAT(taken->of, ElementsAre(alice, bob));
  EXPECT_EQ(taken->who.front(), identity_);
  EXPECT_EQ(taken->while_allowed.needed, access_right::agent);
  EXPECT_EQ(taken->while_allowed.name, "name");
  EXPECT_EQ(take(1), std::nullopt);
}

TEST_F(TicketBook, ForgetsTheTicketsOfAHolderThatLeaves) {
  EXPECT_FALSE(add(1));
  EXPECT_FALSE(book_.leave(bob)) << "no other one acts for it";
  EXPECT_EQ(take(1), std::nullopt);
  EXPECT_EQ(add(2), errc::closed_by_peer);
  EXPECT_FALSE(book_.leave(bob));
}

TEST_F(TicketBook, GivesRoomBackWhenAHolderLeaves) {
  for (std::uint8_t i = 1; i <= ticket_book::most_of_one; ++i) EXPECT_FALSE(add(i));
  EXPECT_FALSE(book_.leave(alice));
  book_.enter(alice, identity_);
  for (std::uint8_t i = 1; i <= ticket_book::most_of_one; ++i) EXPECT_FALSE(add(i)) << int{i};
  EXPECT_EQ(add(200), errc::busy);
}

TEST_F(TicketBook, TakesNoTicketWithoutBits) { EXPECT_EQ(add(0), errc::invalid_argument); }

TEST_F(TicketBook, KnowsForWhomAConnectionActsUntilItEnds) {
  const auto is_alice = [](const peer_identity& who) { return who.token == "alice"; };
  const auto is_any = [](const peer_identity&) { return true; };
  EXPECT_TRUE(book_.allow_all(agent, is_alice)) << "it acts for no other one";
  EXPECT_FALSE(add(1));
  EXPECT_TRUE(take(1));
  EXPECT_FALSE(book_.allow_all(agent, is_alice));
  EXPECT_TRUE(book_.allow_all(agent, is_any));
  EXPECT_TRUE(book_.allow_all(alice, is_alice));
  book_.leave(alice);
  book_.leave(bob);
  EXPECT_FALSE(book_.allow_all(agent, is_alice)) << "it may not more than before";
  book_.ended(agent);
  EXPECT_TRUE(book_.allow_all(agent, is_alice));
}

TEST_F(TicketBook, TellsWhetherOthersActForAHolderThatLeaves) {
  EXPECT_FALSE(add(1));
  EXPECT_TRUE(take(1));
  EXPECT_TRUE(book_.leave(alice));
  EXPECT_FALSE(book_.leave(alice));
  EXPECT_TRUE(book_.leave(bob));
}

TEST_F(TicketBook, TakesATicketOnceAndSoManyOfAClient) {
  for (std::uint8_t i = 1; i <= ticket_book::most_of_one; ++i) EXPECT_FALSE(add(i));
  EXPECT_EQ(add(1), errc::already_exists);
  EXPECT_EQ(add(200), errc::busy);
  EXPECT_TRUE(take(1));
  EXPECT_FALSE(add(200));
}

}  // namespace
}  // namespace ucx::detail
