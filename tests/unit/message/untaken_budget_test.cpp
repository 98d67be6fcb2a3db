// The ledger of the room for untaken messages, without connections.
#include "message/untaken_budget.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <deque>
#include <vector>

namespace ucx::detail {
namespace {

constexpr std::size_t mib = (std::size_t{1} << 20U) / 256;
constexpr std::size_t window = 4 * mib;
constexpr std::size_t number = 256 * mib;

struct peer : room_account {
  using room_account::written_off;
  void more_lent(std::size_t units) noexcept override { more += units; }
  void recalled(std::size_t loan) noexcept override { recalls.push_back(loan); }
  std::size_t unused() const noexcept override { return lent() - used; }
  bool is_overdue() const noexcept override { return overdue; }
  /// Does as a connection does whose messages are all taken, and which wants more.
  void take_all(untaken_budget& budget) {
    const std::size_t kept = budget.withhold(*this, used);
    withheld += kept;
    used = 0;
    budget.ask(*this, true);
    budget.serve();
  }

  bool overdue = false;
  std::size_t used = 0;
  std::size_t more = 0;
  std::size_t withheld = 0;
  std::vector<std::size_t> recalls;
};

/// A worker and its peers.
class UntakenBudget : public testing::Test {
 protected:
  peer& come() {
    peer& made = peers_.emplace_back();
    budget_.open(made, true, window);
    budget_.loosen(made);
    return made;
  }
  /// A peer of whom nobody knows whether its loan may change.
  peer& come_unknown() {
    peer& made = peers_.emplace_back();
    budget_.open(made, false, window);
    return made;
  }
  void come_in_numbers(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) come();
  }
  std::size_t lent() const {
    std::size_t sum = 0;
    for (const peer& each : peers_) sum += each.lent();
    return sum;
  }
  /// Every peer that was asked gives back what it does not use.
  void answer_recalls() {
    for (peer& each : peers_) {
      if (each.recalls.empty()) continue;
      const std::size_t kept = std::max(each.recalls.back(), each.used);
      each.recalls.clear();
      budget_.given_back(each, each.lent() - kept);
    }
  }

  untaken_budget budget_{number};
  std::deque<peer> peers_;
};

TEST_F(UntakenBudget, FirstPeersHaveTheirWholeWindow) {
  for (int i = 0; i < 15; ++i) EXPECT_EQ(come().lent(), window) << i;
}

TEST_F(UntakenBudget, ThousandPeersStayWithinTheNumber) {
  come_in_numbers(1000);
  EXPECT_LE(budget_.in_use(), number);
  for (int round = 0; round < 20; ++round) {
    for (peer& each : peers_) {
      each.used = each.lent();
      budget_.ask(each, false);
    }
  }
  EXPECT_EQ(budget_.in_use(), lent());
  EXPECT_LE(budget_.in_use(), number / 2 + 1000 * untaken_budget::floor);
  for (int round = 0; round < 20; ++round) {
    for (peer& each : peers_) budget_.ask(each, true);
  }
  EXPECT_EQ(budget_.in_use(), lent());
  EXPECT_LE(budget_.in_use(), number);
  EXPECT_GT(budget_.in_use(), number * 3 / 4) << "what is there is lent";
  for (const peer& each : peers_) EXPECT_GE(each.lent(), untaken_budget::floor);
}

TEST_F(UntakenBudget, OneThatIsReadGetsItsWindow) {
  come_in_numbers(1000);
  for (int round = 0; round < 20; ++round) {
    for (peer& each : peers_) {
      each.used = each.lent();
      budget_.ask(each, false);
    }
  }
  peer& read = peers_.back();
  for (int round = 0; round < 20; ++round) read.take_all(budget_);
  EXPECT_EQ(read.lent(), window);
  EXPECT_LE(budget_.in_use(), number);
}

TEST_F(UntakenBudget, WhatIdlePeersDoNotUseIsRecalled) {
  come_in_numbers(100);
  for (int round = 0; round < 20; ++round) {
    for (peer& each : peers_) each.take_all(budget_);
  }
  ASSERT_GT(budget_.in_use(), number * 3 / 4);
  peer& late = come();
  const std::size_t before = late.lent();
  for (int round = 0; round < 40 && late.lent() < window; ++round) {
    late.used = late.lent();
    late.take_all(budget_);
    answer_recalls();
  }
  EXPECT_LT(before, window);
  EXPECT_EQ(late.lent(), window);
  EXPECT_EQ(budget_.in_use(), lent());
}

TEST_F(UntakenBudget, PeerThatDoesNotAnswerIsAskedOnce) {
  come_in_numbers(100);
  for (int round = 0; round < 20; ++round) {
    for (peer& each : peers_) each.take_all(budget_);
  }
  for (peer& each : peers_) each.recalls.clear();
  peer& late = come();
  for (int round = 0; round < 100; ++round) {
    late.used = late.lent();
    late.take_all(budget_);
  }
  for (const peer& each : peers_) EXPECT_LE(each.recalls.size(), 1U);
}

TEST_F(UntakenBudget, WhoWaitsIsServedInTurn) {
  come_in_numbers(80);
  for (int round = 0; round < 20; ++round) {
    for (peer& each : peers_) {
      budget_.ask(each, true);
      each.used = each.lent();
    }
  }
  peer& first = come();
  peer& second = come();
  first.used = first.lent();
  second.used = second.lent();
  budget_.ask(first, true);
  budget_.ask(second, true);
  ASSERT_EQ(first.more, 0U);
  // They stand behind those that still want more, which leave one after the other.
  std::size_t left = 0;
  for (; first.more == 0 && left < 80; ++left) budget_.close(peers_[left]);
  EXPECT_GT(first.more, 0U) << "at once";
  EXPECT_GE(first.more, second.more);
  for (; second.more == 0 && left < 80; ++left) budget_.close(peers_[left]);
  EXPECT_GT(second.more, 0U);
}

TEST_F(UntakenBudget, RicherPeersGiveWayToPoorerOnes) {
  come_in_numbers(56);
  for (int round = 0; round < 20; ++round) {
    for (peer& each : peers_) {
      each.used = each.lent();
      budget_.ask(each, true);
    }
  }
  peer& poor = come();
  poor.used = poor.lent();
  for (int round = 0; round < 200; ++round) {
    for (peer& each : peers_) {
      each.used = each.lent();
      each.take_all(budget_);
    }
    ASSERT_LE(budget_.in_use(), number);
  }
  const std::size_t share = number * 7 / 8 / peers_.size();
  for (const peer& each : peers_) {
    EXPECT_GT(each.lent(), share / 2);
    EXPECT_LE(each.lent(), window);
  }
  EXPECT_EQ(budget_.in_use(), lent());
}

TEST_F(UntakenBudget, PeerThatLeavesGivesBackAllButWhatItLeft) {
  peer& left = come();
  const std::size_t before = budget_.in_use();
  budget_.shrink(left, 100);
  EXPECT_EQ(budget_.in_use(), before - window + 100);
  budget_.keep(100);
  budget_.close(left);
  EXPECT_EQ(budget_.in_use(), 100U);
  budget_.release(100);
  EXPECT_EQ(budget_.in_use(), 0U);
  budget_.close(left);
  EXPECT_EQ(budget_.in_use(), 0U) << "once";
}

TEST_F(UntakenBudget, PeerThatLeavesTheLineIsNotServed) {
  come_in_numbers(1000);
  for (int round = 0; round < 20; ++round) {
    for (peer& each : peers_) {
      each.used = each.lent();
      budget_.ask(each, true);
    }
  }
  for (peer& each : peers_) budget_.close(each);
  EXPECT_EQ(budget_.in_use(), 0U);
  EXPECT_FALSE(budget_.is_short());
  EXPECT_EQ(come().lent(), window);
}

TEST_F(UntakenBudget, PeerThatCanNotBeToldKeepsWhatItHas) {
  come_in_numbers(1000);
  peer& old = come_unknown();
  EXPECT_EQ(old.lent(), untaken_budget::stiff_floor);
  budget_.ask(old, true);
  for (int round = 0; round < 50; ++round) {
    for (peer& each : peers_) {
      if (&each != &old) each.take_all(budget_);
    }
    answer_recalls();
  }
  EXPECT_EQ(old.lent(), untaken_budget::stiff_floor);
  EXPECT_TRUE(old.recalls.empty());
  EXPECT_EQ(budget_.withhold(old, 64), 0U);
}

TEST_F(UntakenBudget, LoansThatNeverChangeShareAnEighth) {
  for (int i = 0; i < 1000; ++i) come_unknown();
  EXPECT_EQ(peers_.front().lent(), window);
  EXPECT_LE(budget_.in_use(), number / 8 + 1000 * untaken_budget::stiff_floor);
  for (peer& each : peers_) budget_.loosen(each);
  EXPECT_GT(come_unknown().lent(), untaken_budget::stiff_floor) << "that turned out to borrow";
  for (peer& each : peers_) budget_.close(each);
  EXPECT_EQ(come_unknown().lent(), window);
}

TEST_F(UntakenBudget, PeersThatAreGoneDoNotCount) {
  come_in_numbers(1000);
  for (peer& each : peers_) budget_.shrink(each, 1);
  EXPECT_EQ(come().lent(), window) << "though they are not closed";
  EXPECT_EQ(budget_.in_use(), 1000 + window);
  for (peer& each : peers_) budget_.close(each);
  EXPECT_EQ(budget_.in_use(), 0U);
}

/// Everything that may be lent is with peers that use none of it, and another one wants some.
class SilentPeers : public UntakenBudget {
 protected:
  SilentPeers() {
    come_in_numbers(100);
    for (int round = 0; round < 20; ++round) {
      for (peer& each : peers_) each.take_all(budget_);
    }
    late_ = &come();
    want();
  }
  void want() {
    for (int round = 0; round < 100; ++round) {
      late_->used = late_->lent();
      late_->take_all(budget_);
    }
  }
  void let_time_pass() {
    for (peer& each : peers_) each.overdue = true;
    want();
    for (peer& each : peers_) each.overdue = false;
  }
  peer* late_ = nullptr;
};

TEST_F(SilentPeers, LoseWhatOthersWaitFor) {
  const std::size_t before = late_->lent();
  EXPECT_LT(before, window);
  let_time_pass();
  EXPECT_EQ(late_->lent(), window);
  EXPECT_EQ(budget_.in_use(), lent());
  EXPECT_LE(budget_.in_use(), number);
}

TEST_F(SilentPeers, EndWithNoMoreThanTheirPart) {
  for (int i = 0; i < 1000; ++i) come();
  for (int round = 0; round < 40; ++round) {
    let_time_pass();
    for (std::size_t i = 100; i < peers_.size(); ++i) {
      peers_[i].used = peers_[i].lent();
      peers_[i].take_all(budget_);
    }
  }
  const std::size_t part = number * 7 / 8 / peers_.size();
  for (std::size_t i = 0; i < 100; ++i) EXPECT_LE(peers_[i].lent(), part) << i;
  EXPECT_EQ(budget_.in_use(), lent());
  EXPECT_LE(budget_.in_use(), number);
}

TEST_F(SilentPeers, GetNothingUntilTheyHaveAnswered) {
  let_time_pass();
  peer* silent = &peers_.front();
  for (peer& each : peers_) {
    if (each.written_off() > 0) silent = &each;
  }
  ASSERT_GT(silent->written_off(), 0U);
  const std::size_t left = silent->lent();
  const std::size_t lost = silent->written_off();
  budget_.close(*late_);
  silent->used = left;
  budget_.ask(*silent, true);
  EXPECT_EQ(silent->lent(), left);
  for (std::size_t i = silent->recalls.size(); i > 1; --i) budget_.given_back(*silent, 0);
  EXPECT_FALSE(untaken_budget::may_give_back(*silent, lost - 1));
  ASSERT_TRUE(untaken_budget::may_give_back(*silent, lost));
  budget_.given_back(*silent, lost);
  EXPECT_EQ(silent->lent(), left);
  budget_.ask(*silent, true);
  EXPECT_GT(silent->lent(), left);
}

TEST_F(SilentPeers, KeepWhatTheyUse) {
  for (peer& each : peers_) each.used = each.lent();
  const std::size_t before = lent() - late_->lent();
  let_time_pass();
  EXPECT_EQ(lent() - late_->lent(), before);
}

TEST_F(SilentPeers, MayUseWhatTheyLostUntilTheyAnswer) {
  let_time_pass();
  peer* silent = &peers_.front();
  for (peer& each : peers_) {
    if (each.written_off() > 0) silent = &each;
  }
  const std::size_t lost = silent->written_off();
  const std::size_t before = silent->lent() + lost;
  ASSERT_GT(lost, 0U);
  EXPECT_FALSE(budget_.regain(*silent, lost + 1));
  EXPECT_TRUE(budget_.regain(*silent, 1));
  EXPECT_TRUE(budget_.regain(*silent, lost - 1));
  EXPECT_EQ(silent->lent(), before);
  EXPECT_EQ(silent->written_off(), 0U);
  EXPECT_EQ(budget_.in_use(), lent());
}

TEST_F(SilentPeers, ExceedTheNumberByAnEighthAtMost) {
  for (int i = 0; i < 1000; ++i) come();
  for (int round = 0; round < 40; ++round) {
    let_time_pass();
    for (std::size_t i = 100; i < peers_.size(); ++i) {
      peers_[i].used = peers_[i].lent();
      peers_[i].take_all(budget_);
    }
  }
  std::size_t refused = 0;
  for (peer& each : peers_) {
    if (!budget_.regain(each, each.written_off())) ++refused;
  }
  EXPECT_GT(refused, 0U);
  EXPECT_GT(budget_.in_use(), number);
  EXPECT_LE(budget_.in_use(), number + number / 8);
  EXPECT_EQ(budget_.in_use(), lent());
}

/// It has not answered, and uses what was recalled.
TEST(UntakenBudgetOfTwo, OverduePeerKeepsItsPlaceInTheLine) {
  untaken_budget budget(8192);
  peer rich;
  peer poor;
  for (peer* const each : {&rich, &poor}) {
    budget.open(*each, true, 5000);
    budget.loosen(*each);
  }
  budget.ask(rich, true);
  while (poor.recalls.empty() && rich.recalls.empty()) {
    poor.used = poor.lent();
    budget.ask(poor, true);
  }
  ASSERT_EQ(rich.recalls.size(), 1U);
  rich.used = rich.lent();
  rich.overdue = true;
  budget.serve();
  budget.ask(rich, true);
  EXPECT_EQ(rich.written_off(), 0U);
  EXPECT_LT(rich.lent(), 5000U);
  budget.serve();
  budget.close(poor);
  EXPECT_EQ(rich.lent(), 5000U);
}

/// Its loan and a recall may cross.
TEST_F(UntakenBudget, NobodyFallsBelowTheFloor) {
  peer& one = come();
  budget_.given_back(one, one.lent());
  EXPECT_EQ(one.lent(), untaken_budget::floor);
  EXPECT_EQ(one.more, untaken_budget::floor) << "it hears of them";
  EXPECT_EQ(budget_.in_use(), untaken_budget::floor);
}

}  // namespace
}  // namespace ucx::detail
