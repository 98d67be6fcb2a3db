// Every call can fail, be late, or complete in another order, as planned or from a seed.
#include "support/fake_ucp/fault_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support/fake_ucp/fake_network.hpp"
#include "support/simulated/raw_pair.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

TEST(FaultPlan, FailsTheCallThatWasPlanned) {
  fake_network network;
  {
    raw_pair pair(network);
    network.faults().fail(call::get, UCS_ERR_NO_MEMORY, 2);
    auto& first = pair.get();
    auto& second = pair.get();
    auto& third = pair.get();
    EXPECT_FALSE(first.done());
    EXPECT_TRUE(second.at_once);
    EXPECT_EQ(second.status, UCS_ERR_NO_MEMORY);
    ASSERT_TRUE(pair.reader.wait(first));
    ASSERT_TRUE(pair.reader.wait(third));
    EXPECT_EQ(first.status, UCS_OK);
    EXPECT_EQ(third.status, UCS_OK);
    EXPECT_EQ(network.count(call::get), 3U);
    EXPECT_EQ(pair.owner.process.count(call::get), 0U);
    EXPECT_EQ(network.bytes(call::get), 8U);
  }
  network.expect_clean();
}

TEST(FaultPlan, FailsEveryCallOfOneProcess) {
  fake_network network;
  {
    raw_pair pair(network);
    pair.owner.process.faults().fail(call::mem_map, UCS_ERR_IO_ERROR, 0);
    ucp_mem_map_params_t parameters{};
    ucp_mem_h memory = nullptr;
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(pair.owner.api.mem_map(pair.owner.context, &parameters, &memory), UCS_ERR_IO_ERROR);
    }
    pair.owner.process.faults().clear();
    const auto mapped = pair.owner.map(pair.region.data(), 1);
    EXPECT_EQ(pair.owner.api.mem_unmap(pair.owner.context, mapped), UCS_OK);
  }
  network.expect_clean();
}

TEST(FaultPlan, FailsLateWithoutMovingAByte) {
  fake_network network;
  {
    raw_pair pair(network);
    network.faults().fail_late(call::get, UCS_ERR_IO_ERROR);
    auto& reading = pair.get();
    EXPECT_FALSE(reading.done());
    ASSERT_TRUE(pair.reader.wait(reading));
    EXPECT_EQ(reading.status, UCS_ERR_IO_ERROR);
    EXPECT_EQ(pair.into.back(), "    ");
  }
  network.expect_clean();
}

TEST(FaultPlan, LetsLaterReadsOvertakeADelayedOne) {
  fake_network network;
  {
    raw_pair pair(network);
    network.faults().delay(call::get, 50ms);
    auto& late = pair.get();
    auto& early = pair.get();
    ASSERT_TRUE(pair.reader.wait(early));
    EXPECT_FALSE(late.done());
    EXPECT_EQ(pair.into.front(), "    ");
    const auto begin = network.now();
    ASSERT_TRUE(pair.reader.wait(late));
    EXPECT_GT(network.now() - begin, 40ms);
    EXPECT_EQ(pair.into.front(), "remo");
  }
  network.expect_clean();
}

TEST(FaultPlan, CompletesADelayedMessageLateButInOrder) {
  fake_network network;
  {
    raw_pair pair(network);
    network.faults().delay(call::am_send, 50ms);
    auto& late = pair.reader.send(pair.endpoint, "", "first");
    pair.reader.send(pair.endpoint, "", "second");
    ASSERT_TRUE(pair.reader.wait([&] { return pair.owner.messages.size() == 2; }));
    EXPECT_EQ(pair.owner.messages[0].bytes, "first");
    EXPECT_FALSE(late.done());
    ASSERT_TRUE(pair.reader.wait(late));
  }
  network.expect_clean();
}

TEST(FaultPlan, ReordersCompletionsFromASeed) {
  const auto order = [](std::uint64_t seed, double probability) {
    fake_network network({}, seed);
    std::vector<std::ptrdiff_t> result;
    {
      raw_pair pair(network);
      network.faults().inline_completion(0);
      std::vector<const outcome*> sent;
      for (int i = 0; i < 20; ++i) sent.push_back(&pair.reader.send(pair.endpoint, "x", ""));
      // The wire takes all of them before the reader looks.
      pair.reader.process.on_pump({});
      network.advance(1ms);
      network.faults().reorder(probability);
      EXPECT_TRUE(pair.reader.wait([&] { return pair.reader.ended.size() == sent.size(); }));
      for (const auto* each : pair.reader.ended) {
        result.push_back(std::find(sent.begin(), sent.end(), each) - sent.begin());
      }
    }
    network.expect_clean();
    return result;
  };
  const auto in_order = order(1, 0);
  EXPECT_TRUE(std::is_sorted(in_order.begin(), in_order.end()));
  const auto mixed = order(1, 0.5);
  EXPECT_FALSE(std::is_sorted(mixed.begin(), mixed.end()));
  EXPECT_EQ(mixed, order(1, 0.5));
  EXPECT_NE(mixed, order(2, 0.5));
}

TEST(FaultPlan, DecidesWhetherOperationsCompleteInline) {
  fake_network network;
  {
    raw_pair pair(network);
    network.faults().inline_completion(0);
    auto& pending = pair.reader.send(pair.endpoint, "h", "x");
    EXPECT_FALSE(pending.at_once);
    EXPECT_FALSE(pair.reader.flush(pair.endpoint).at_once);
    ASSERT_TRUE(pair.reader.wait(pending));
    network.faults().inline_completion(1);
    EXPECT_TRUE(pair.reader.send(pair.endpoint, "", std::string(100'000, 'x')).at_once);
    EXPECT_TRUE(pair.reader.flush(pair.endpoint).at_once);
  }
  network.expect_clean();
}

TEST(FaultPlan, DrawsTheSameChaosFromTheSameSeed) {
  const auto statuses = [](std::uint64_t seed) {
    fake_network network({}, seed);
    std::vector<ucs_status_t> result;
    {
      raw_pair pair(network);
      network.faults().randomize(
          {.fail = 0.2, .fail_late = 0.2, .delay = 0.5, .calls = {call::get}});
      for (int i = 0; i < 50; ++i) {
        auto& reading = pair.get();
        EXPECT_TRUE(pair.reader.wait(reading));
        result.push_back(*reading.status);
      }
      network.faults().clear();
    }
    network.expect_clean();
    return result;
  };
  const auto once = statuses(3);
  EXPECT_EQ(once, statuses(3));
  EXPECT_NE(once, statuses(4));
  EXPECT_GT(std::count(once.begin(), once.end(), UCS_OK), 10);
  EXPECT_LT(std::count(once.begin(), once.end(), UCS_OK), 45);
}

}  // namespace
}  // namespace ucx::test
