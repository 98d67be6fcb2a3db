// Calls between two simulated processes, one of which does not keep to the rules, or has no memory.
#include <gtest/gtest.h>

#include <any>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "call/call_message.hpp"
#include "support/bytes/pattern.hpp"
#include "support/replaced/short_memory.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "ucx/rpc.hpp"
#include "unit/rpc/call_names.hpp"

namespace ucx::calls {
namespace {

using namespace std::chrono_literals;
using bytes = std::vector<std::byte>;

/// The program's own object, of which no copy can be made for a while.
struct hard_to_copy {
  explicit hard_to_copy(int& failures) : left(&failures) {}
  hard_to_copy(const hard_to_copy& other) : left(other.left) {
    if (*left > 0 && --*left == 0) throw std::bad_alloc();
  }
  hard_to_copy& operator=(const hard_to_copy&) = delete;
  ~hard_to_copy() = default;
  int* left;
};

class HostileCall : public ::testing::Test {
 protected:
  HostileCall() {
    calls_.add("add", [this](int a, int b) {
      ++runs_;
      return a + b;
    });
    calls_.add("size", [](const bytes& value) { return value.size(); });
    calls_.add("many", [this] {
      ++runs_;
      return bytes(900'000);
    });
  }

  void serve(call_server_options options = {}) {
    serves_ = call_server(both_.receiver(), calls_, std::move(options));
  }
  bool until(const std::function<bool()>& done) { return both_.network().run_until(done); }
  /// The callee keeps calls, and the test answers them.
  void keep_calls() {
    both_.receiver().on_message(to_callee,
                                [this](message came) { kept_.push_back(std::move(came)); });
  }
  std::uint64_t number_of(std::size_t index) const {
    return detail::decode_beginning(kept_[index].header())->number;
  }
  static request send(endpoint& to, const message_name& name, const detail::call_message& what) {
    return to.start_send(active_message{name, what.head()}, what.body,
                         {.memory = send_memory::copied});
  }
  void post(endpoint& to, const message_name& name, const detail::call_message& what) {
    sends_.push_back(send(to, name, what));
  }
  static detail::call_message result_of(std::uint64_t number, const bytes& value) {
    return detail::encode_result(number, call_writer().bytes(value).written());
  }
  static detail::call_message call_of(const call_function& called, std::uint64_t number,
                                      const call_writer& arguments,
                                      std::chrono::nanoseconds left = {}) {
    return detail::encode_request({.number = number,
                                   .left = left,
                                   .hash = called.signature().hash(),
                                   .name = called.name(),
                                   .arguments = arguments.written()});
  }

  test::simulated_messages both_;
  int runs_ = 0;
  std::vector<message> kept_;
  std::vector<request> sends_;
  call_table calls_;
  call_server serves_;
  call_channel peer_{both_.sender};
};

TEST_F(HostileCall, HasOneAnswerThatIsAnnounced) {
  keep_calls();
  auto asked = peer_.start_call<bytes>("many");
  ASSERT_TRUE(until([&] { return kept_.size() == 1; }));
  const bytes value = test::pattern(900'000, 1);
  endpoint back = kept_[0].peer();
  const request first = send(back, to_caller, result_of(number_of(0), value));
  const request second = send(back, to_caller, result_of(number_of(0), bytes(900'000)));
  ASSERT_TRUE(until([&] { return second.done(); }));
  EXPECT_EQ(second.error(), errc::message_refused);
  EXPECT_FALSE(asked.done()) << "the second one is not asked for";
  EXPECT_TRUE(asked.result() == value);
}

TEST_F(HostileCall, HasAnUnknownOutcomeWhereItsAnswerIsWithdrawn) {
  keep_calls();
  auto asked = peer_.start_call<bytes>("many");
  ASSERT_TRUE(until([&] { return kept_.size() == 1; }));
  endpoint back = kept_[0].peer();
  request answer = send(back, to_caller, result_of(number_of(0), bytes(900'000)));
  answer.cancel();
  ASSERT_TRUE(until([&] { return asked.done(); }));
  EXPECT_EQ(asked.error(), errc::call_outcome_unknown);
}

TEST_F(HostileCall, DoesNotRunWhereItsArgumentsAreRefused) {
  keep_calls();
  auto asked = peer_.start_call<std::uint64_t>("size", bytes(900'000));
  ASSERT_TRUE(until([&] { return kept_.size() == 1; }));
  kept_.clear();
  ASSERT_TRUE(until([&] { return asked.done(); }));
  EXPECT_EQ(asked.error(), errc::message_refused);
}

TEST_F(HostileCall, IsWithdrawnWhereItIsGivenUp) {
  keep_calls();
  auto asked = peer_.start_call<std::uint64_t>("size", bytes(900'000));
  ASSERT_TRUE(until([&] { return kept_.size() == 1; }));
  asked.cancel();
  both_.settle();
  bytes into(kept_[0].length());
  const request receiving = kept_[0].start_receive(std::span(into));
  ASSERT_TRUE(until([&] { return receiving.done(); }));
  EXPECT_EQ(receiving.error(), errc::message_withdrawn);
}

TEST_F(HostileCall, IsAnsweredByItsOwnConnectionAlone) {
  keep_calls();
  endpoint other = both_.pair.connect();
  const call_channel beside(other);
  auto asked = beside.start_call<bytes>("many");
  ASSERT_TRUE(until([&] { return kept_.size() == 1; }));
  const bytes wrong(10);
  const bytes right = test::pattern(10, 1);
  endpoint first = both_.back();
  post(first, to_caller, result_of(number_of(0), wrong));
  both_.settle();
  EXPECT_FALSE(asked.done());
  endpoint back = kept_[0].peer();
  post(back, to_caller, result_of(number_of(0), right));
  ASSERT_TRUE(until([&] { return asked.done(); }));
  EXPECT_TRUE(asked.result() == right);
}

TEST_F(HostileCall, EndsWithEachAnswerThatIsNone) {
  keep_calls();
  const auto ended_by = [&](auto change) {
    auto asked = peer_.start_call<bytes>("many");
    const std::size_t index = kept_.size();
    EXPECT_TRUE(until([&] { return kept_.size() > index; }));
    detail::call_message answer = result_of(number_of(index), bytes(10));
    change(answer);
    endpoint back = kept_[index].peer();
    post(back, to_caller, answer);
    EXPECT_TRUE(until([&] { return asked.done(); }));
    std::error_code ec;
    asked.result(ec);
    return ec;
  };
  for (const int kind : {0, 1, 3, 4, 5, 6, 255}) {
    EXPECT_TRUE(ended_by([&](auto& answer) { answer.head_room[1] = std::byte(kind); })) << kind;
  }
  for (const int outcome : {1, 5, 11, 12, 255}) {
    EXPECT_EQ(ended_by([&](auto& answer) { answer.head_room[16] = std::byte(outcome); }),
              errc::protocol_error)
        << outcome;
  }
  EXPECT_EQ(ended_by([](auto& answer) { answer.head_room[0] = std::byte(2); }),
            errc::version_mismatch);
  EXPECT_EQ(ended_by([](auto& answer) { answer.body.resize(3); }), errc::protocol_error);
  EXPECT_EQ(ended_by([](auto& answer) { answer.body.resize(2'000'000); }),
            errc::call_outcome_unknown);
  EXPECT_FALSE(ended_by([](auto&) {}));
}

TEST_F(HostileCall, CostsABoundWhereItsAnswersAreNotTaken) {
  call_server_options options;
  options.max_calls = 4;
  serve(std::move(options));
  both_.pair.reader.on_message(to_caller,
                               [this](message came) { kept_.push_back(std::move(came)); });
  const call_function many("many", "()->bytes");
  for (std::uint64_t i = 0; i < 30; ++i) {
    post(both_.sender, to_callee, call_of(many, 7, call_writer()));
  }
  ASSERT_TRUE(until([&] { return kept_.size() == 30; }));
  EXPECT_EQ(runs_, 4);
  EXPECT_EQ(serves_.under_way(), 4U);
  EXPECT_EQ(calls_.statistics().refused, 26U);
  kept_.clear();  // which refuses them
  EXPECT_TRUE(until([&] { return serves_.under_way() == 0; }));
}

TEST_F(HostileCall, DoesNotRunWhereItsTimeIsOver) {
  serve();
  const call_function size("size", "(bytes)->u64");
  call_writer arguments;
  arguments.bytes(bytes(900'000));
  const request sending = send(both_.sender, to_callee, call_of(size, 7, arguments, 1ns));
  EXPECT_TRUE(until([&] { return calls_.statistics().given_up == 1; }));
  EXPECT_TRUE(until([&] { return serves_.under_way() == 0 && sending.done(); }));
}

TEST_F(HostileCall, IsRefusedWhereThereIsNoMemory) {
  int failures = 0;
  call_server_options options;
  options.program = std::make_any<hard_to_copy>(failures);
  serve(std::move(options));
  for (const std::size_t size : {10U, 900'000U}) {
    failures = 1;
    auto asked = peer_.start_call<std::uint64_t>("size", bytes(size));
    ASSERT_TRUE(until([&] { return asked.done(); }));
    EXPECT_EQ(asked.error(), errc::busy) << size;
    EXPECT_TRUE(until([&] { return serves_.under_way() == 0; }));
    EXPECT_EQ(peer_.call<std::uint64_t>("size", bytes(size)), size);
  }
}

TEST_F(HostileCall, HasFailedWhereThereIsNoMemoryBehindTheFunction) {
  for (const int left : {0, 1}) {
    const std::string name = "short" + std::to_string(left);
    calls_.add(name, [left] { test::allocations_until_failure = left; });
  }
  serve();
  for (const char* name : {"short0", "short1"}) {
    auto asked = peer_.start_call<void>(name);
    ASSERT_TRUE(until([&] { return asked.done(); }));
    EXPECT_LT(std::exchange(test::allocations_until_failure, -1), 0);
    EXPECT_EQ(asked.error(), errc::call_failed) << name;
    EXPECT_EQ(asked.cause(), errc::no_memory) << name;
    EXPECT_EQ(peer_.call<int>("add", 1, 2), 3);
  }
}

TEST_F(HostileCall, IsToldThatTheServerEnds) {
  serve();
  auto asked = peer_.start_call<std::uint64_t>("size", bytes(900'000));
  ASSERT_TRUE(until([&] { return serves_.under_way() == 1; }));
  serves_ = call_server();
  ASSERT_TRUE(until([&] { return asked.done(); }));
  EXPECT_EQ(asked.error(), errc::busy);
}

TEST_F(HostileCall, OutlivesAServerThatEndsInItsFunction) {
  calls_.add("end", [this](const bytes& value) {
    serves_ = call_server();
    return value;
  });
  for (const std::size_t size : {10U, 900'000U}) {
    serve();
    const bytes sent = test::pattern(size, 1);
    EXPECT_TRUE(peer_.call<bytes>("end", sent) == sent) << size;
    auto late = peer_.start_call<int>("add", 1, 2);
    ASSERT_TRUE(until([&] { return late.done(); }));
    EXPECT_EQ(late.error(), errc::no_such_handler);
  }
}

TEST_F(HostileCall, LeavesTheConnectionBehindMessagesThatAreNoCalls) {
  serve({.clock = std::make_shared<hybrid_clock>()});
  for (std::size_t size = 0; size < 70; ++size) {
    for (const int filling : {0, 1, 255}) {
      for (int kind = 0; kind < 7; ++kind) {
        bytes head(size, std::byte(filling));
        if (size >= 16) {  // its beginning is in order
          head[0] = std::byte{1};
          head[1] = std::byte(kind);
          head[2] = std::byte(size);
          for (std::size_t i = 3; i < 8; ++i) head[i] = std::byte{0};
        }
        both_.sender.send(active_message{to_callee, head}, bytes(100, std::byte(filling)));
      }
    }
    both_.settle();
  }
  EXPECT_EQ(peer_.call<int>("add", 1, 2), 3);
  EXPECT_EQ(runs_, 1);
  EXPECT_EQ(serves_.under_way(), 0U);
}

}  // namespace
}  // namespace ucx::calls
