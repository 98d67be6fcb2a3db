#include "connection/control_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

#include "connection/channel.hpp"
#include "connection/connection_table.hpp"
#include "connection/endpoint_core.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "support/simulated/simulated_server.hpp"
#include "ucx/endpoint.hpp"
#include "wire/control_message.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::test {
namespace {

using namespace detail;
using namespace std::chrono_literals;

/// Lines of a worker in time that stands still unless a test moves it.
class ControlTurns : public testing::Test {
 protected:
  ControlTurns() { pair_.reader_process.on_pump({}); }  // nobody else makes rounds

  void add(const int& whom, int count, std::chrono::nanoseconds length = 0ns) {
    const std::lock_guard guard(core_.lock());
    for (int i = 0; i < count; ++i) {
      core_.connections().turns().add(&whom, 1, [this, &whom, length] {
        pair_.network.advance(length);
        served_.push_back(&whom);
      });
    }
  }
  std::size_t served(const int& whom) const {
    return static_cast<std::size_t>(std::count(served_.begin(), served_.end(), &whom));
  }
  void others_ask() {
    const std::lock_guard guard(core_.lock());
    core_.connections().turns().others_ask();
  }
  void round() { pair_.reader.progress(); }
  /// Makes a round, and says how many of each line were served by then.
  void expect_served(std::size_t first, std::size_t second = 0) {
    round();
    EXPECT_EQ(served(first_), first);
    EXPECT_EQ(served(second_), second);
  }

  std::vector<const int*> served_;  // the pair's end serves what is left
  static simulated_pair_options without_time() {
    simulated_pair_options chosen;
    chosen.link.idle_step = 1us;
    chosen.link.progress_cost = 0ns;
    return chosen;
  }
  simulated_pair pair_{without_time()};
  worker_core& core_ = *core_access::core(pair_.reader);
  const int first_ = 0;
  const int second_ = 0;
};

TEST_F(ControlTurns, ServeOneLineARoundAndAFewOfIt) {
  add(first_, 1000);
  add(second_, 3);
  expect_served(control_queue::most_a_turn);
  expect_served(control_queue::most_a_turn, 3);
  for (int i = 0; i < 100; ++i) round();
  EXPECT_EQ(served(first_), 1000U);
}

TEST_F(ControlTurns, AreShortWhereMessagesAreLong) {
  add(first_, 10, 10us);
  expect_served(1);
  expect_served(2);
}

TEST_F(ControlTurns, LeaveTheTimeToOthersWhoAsk) {
  add(first_, 10, 100us);
  expect_served(1);
  others_ask();
  expect_served(1);
  pair_.network.advance(390us);
  expect_served(1);
  pair_.network.advance(20us);
  expect_served(2);
  pair_.network.advance(2ms);  // nobody asked for long
  for (int i = 0; i < 3; ++i) round();
  EXPECT_EQ(served(first_), 5U);
}

TEST_F(ControlTurns, RestForAMillisecondAtMost) {
  add(first_, 1, 50ms);
  add(second_, 1);
  round();
  ASSERT_EQ(served(first_), 1U);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(served(second_), 0U);
    pair_.network.advance(600us);
    others_ask();
    round();
  }
  EXPECT_EQ(served(second_), 1U);
}

TEST_F(ControlTurns, ForgetWhoIsGone) {
  add(first_, 100);
  add(second_, 1);
  {
    const std::lock_guard guard(core_.lock());
    EXPECT_EQ(core_.connections().turns().room_of(&first_), 100U);
    core_.connections().turns().drop(&first_);
    EXPECT_EQ(core_.connections().turns().room_of(&first_), 0U);
  }
  for (int i = 0; i < 3; ++i) round();
  EXPECT_EQ(served(first_), 0U);
  EXPECT_EQ(served(second_), 1U);
}

/// A client that asks without waiting for its answers.
class flood final : public channel_receiver {
 public:
  explicit flood(simulated_server& of)
      : process_(of.network.add_process("flood")),
        driver_(of.context_in(process_)),
        peer_(driver_, of.made->address().worker) {
    std::error_code ec;
    peer_.wait_connected(ec);
    EXPECT_FALSE(ec) << ec.message();
    core().control().set_receiver(this);
    control_header hello;
    hello.type = control_type::hello;
    core().control().send(encode_control(hello, hello_body{}));
    EXPECT_TRUE(of.network.run_until([&] {
      driver_.progress();
      return answers > 0;
    }));
  }
  ~flood() override { core().control().set_receiver(nullptr); }
  flood(const flood&) = delete;
  flood& operator=(const flood&) = delete;

  void ask(int count) {
    control_header asked;
    asked.type = control_type::stat;
    const auto question = encode_control(asked, stat_body{"x"});
    for (int i = 0; i < count && !peer_.status(); ++i) core().control().send(question);
  }
  void progress() { driver_.progress(); }
  bool is_lost() const { return static_cast<bool>(peer_.status()); }

  void received(std::span<const std::byte>) override { ++answers; }
  void ended(std::error_code) noexcept override {}

  std::size_t answers = 0;

 private:
  endpoint_core& core() { return *core_access::core(peer_); }

  fake_process& process_;
  worker driver_;
  endpoint peer_;
};

/// A server that makes a round when it is told to.
class AskedServer : public testing::Test {
 protected:
  /// What was asked arrives, and nobody looks at it.
  void let_it_arrive() {
    of_.process.on_pump({});
    of_.network.advance(1s);
  }
  void round() { of_.made->worker().progress(); }
  void go_on() {
    of_.process.on_pump([this] { round(); });
  }

  simulated_server of_;
  client other_ = of_.connect();
};

TEST_F(AskedServer, AnswersOthersBeforeAFloodIsAnswered) {
  constexpr std::size_t rounds = 4;
  flood asks(of_);
  flood patient(of_);
  asks.ask(3000);
  patient.ask(1);
  let_it_arrive();
  for (std::size_t i = 0; i < rounds; ++i) round();
  of_.network.advance(1ms);
  for (int i = 0; i < 10; ++i) {
    asks.progress();
    patient.progress();
  }
  EXPECT_EQ(patient.answers, 2U);
  EXPECT_GT(asks.answers, 1U);
  EXPECT_LE(asks.answers, 1 + control_queue::most_a_turn * rounds);
  go_on();
  EXPECT_TRUE(of_.network.run_until([&] {
    asks.progress();
    return asks.answers == 3001;
  }));
  EXPECT_FALSE(asks.is_lost());
}

TEST_F(AskedServer, EndsTheConnectionOfWhoNeverWaits) {
  flood asks(of_);
  asks.ask(10'000);
  let_it_arrive();
  go_on();
  EXPECT_TRUE(of_.network.run_until([&] {
    asks.progress();
    return asks.is_lost();
  }));
  EXPECT_LT(asks.answers, 10'000U);
  EXPECT_TRUE(other_.list().empty());
}

}  // namespace
}  // namespace ucx::test
