#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "connection/peer_question.hpp"

namespace ucx::detail {
namespace {

/// An operation that only has an address.
class idle_operation final : public peer_question {
 public:
  const void* target() const noexcept override { return nullptr; }
  std::string describe() const override { return {}; }
  void ask() override {}
  void answered(const frame&, std::span<const std::byte>) override {}
  void give_up_for(std::error_code) noexcept override {}

 protected:
  void recycle() noexcept override {}
};

TEST(MessageTable, FindsWhatWasAdded) {
  question_table table;
  std::array<idle_operation, 3> operations;
  std::vector<std::uint64_t> ids;
  for (auto& each : operations) ids.push_back(table.add(each));
  for (std::size_t i = 0; i < operations.size(); ++i) {
    EXPECT_EQ(table.find(ids[i]), &operations[i]);
  }
}

TEST(MessageTable, KnowsNothingElse) {
  question_table table;
  EXPECT_EQ(table.find(0), nullptr);
  EXPECT_EQ(table.find(~std::uint64_t{0}), nullptr);
  idle_operation operation;
  const std::uint64_t id = table.add(operation);
  for (int bit = 0; bit < 64; ++bit) {
    EXPECT_EQ(table.find(id ^ (std::uint64_t{1} << bit)), nullptr) << "bit " << bit;
  }
}

TEST(MessageTable, IdOfAnEndedOperationStaysInvalid) {
  question_table table;
  idle_operation first;
  idle_operation second;
  std::set<std::uint64_t> used;
  for (int round = 0; round < 1000; ++round) {
    idle_operation& operation = round % 2 == 0 ? first : second;
    const std::uint64_t id = table.add(operation);
    EXPECT_TRUE(used.insert(id).second) << "an id was given twice";
    table.remove(id);
    EXPECT_EQ(table.find(id), nullptr);
  }
  const std::uint64_t id = table.add(first);
  for (const std::uint64_t old : used) EXPECT_EQ(table.find(old), nullptr);
  EXPECT_EQ(table.find(id), &first);
}

TEST(MessageTable, ReusesPlaces) {
  question_table table;
  std::array<idle_operation, 4> operations;
  for (int round = 0; round < 100; ++round) {
    std::vector<std::uint64_t> ids;
    for (auto& each : operations) ids.push_back(table.add(each));
    for (const std::uint64_t id : ids) {
      EXPECT_LT(id & 0xffffffffU, operations.size());
      table.remove(id);
    }
  }
}

TEST(MessageTable, AgreesWithAMapUnderRandomUse) {
  question_table table;
  std::array<idle_operation, 64> operations;
  std::map<std::uint64_t, idle_operation*> model;
  std::vector<std::uint64_t> ended;
  std::mt19937_64 random(3);
  for (int round = 0; round < 20000; ++round) {
    if (model.size() < operations.size() && random() % 2 == 0) {
      idle_operation& operation = operations[random() % operations.size()];
      model.emplace(table.add(operation), &operation);
    } else if (!model.empty()) {
      auto chosen = model.begin();
      std::advance(chosen, random() % model.size());
      table.remove(chosen->first);
      ended.push_back(chosen->first);
      model.erase(chosen);
    }
  }
  for (const auto& [id, operation] : model) EXPECT_EQ(table.find(id), operation);
  for (const std::uint64_t id : ended) EXPECT_EQ(table.find(id), nullptr);
}

}  // namespace
}  // namespace ucx::detail
