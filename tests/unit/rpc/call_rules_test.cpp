// Calls at the worker of a server, whose rules and audit are those of the test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "connection/channel.hpp"
#include "support/bytes/pattern.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "ucx/audit.hpp"
#include "ucx/rpc.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::calls {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using bytes = std::vector<std::byte>;

/// What is not in `hidden` may be called. The audit has a word for each line.
class simple_server final : public detail::control_server {
 public:
  void accept(detail::endpoint_core&) override {}
  bool allows(const peer_identity&, std::uint64_t, std::uint64_t, access_right wanted,
              std::string_view name) const noexcept override {
    return wanted == access_right::call && hidden.count(name) == 0;
  }
  void audit(const detail::peer_facts&, const audit_event& event,
             const detail::peer_facts*) override {
    const std::string outcome = event.outcome ? event.outcome.message() : "ok";
    lines.push_back(event.event + ' ' + event.name + ": " + outcome);
  }

  std::set<std::string, std::less<>> hidden;
  std::vector<std::string> lines;
};

class CallRules : public ::testing::Test {
 protected:
  CallRules() {
    calls_.add("add", [](int a, int b) { return a + b; });
    calls_.add("secret", [this] { return ++run_; });
    calls_.add("take", [this](const bytes& all) {
      ++run_;
      return static_cast<std::uint64_t>(all.size());
    });
    calls_.add_dynamic("later", "()->i32", [this](call_context& call, call_reader&, call_writer&) {
      waiting_.push_back(call.defer());
    });
    set_server(&rules_);
    serves_ = call_server(both_.receiver(), calls_);
  }
  ~CallRules() override { set_server(nullptr); }

  void set_server(detail::control_server* server) {
    detail::worker_core& core = *detail::core_access::core(both_.receiver());
    const std::lock_guard guard(core.lock());
    core.set_control_server(server);
  }
  bool until(const std::function<bool()>& done) { return both_.network().run_until(done); }
  template <class Result>
  std::error_code outcome(typed_call<Result> call) {
    EXPECT_TRUE(until([&] { return call.done(); }));
    return call.error();
  }
  std::vector<std::string> names() {
    std::vector<std::string> found;
    for (const call_description& each : peer_.signatures()) found.push_back(each.called.name());
    return found;
  }
  static std::string line(const std::string& event, errc outcome) {
    return event + ": " + make_error_code(outcome).message();
  }

  test::simulated_messages both_;
  simple_server rules_;
  int run_ = 0;
  call_table calls_;
  call_server serves_;
  std::vector<late_answer> waiting_;
  call_channel peer_{both_.sender};
};

TEST_F(CallRules, LetNoHiddenFunctionRun) {
  const call_stub<int()> secret(peer_, "secret");
  rules_.hidden = {"secret"};
  EXPECT_EQ(outcome(peer_.start_call<int>("secret")), errc::no_such_name);
  EXPECT_EQ(outcome(secret.start()), errc::no_such_name) << "also where it is bound";
  call_request dynamic = peer_.start_dynamic_call({"secret", "()->i32"}, call_writer());
  EXPECT_EQ(both_.outcome(dynamic), errc::no_such_name);
  peer_.post_call<int>("secret");
  EXPECT_EQ(peer_.call<int>("add", 1, 2), 3) << "what was posted came before";
  EXPECT_EQ(run_, 0);
  EXPECT_THAT(names(), ElementsAre("add", "later", "take"));
}

TEST_F(CallRules, LetNothingRunWhereTheServerIsGone) {
  const call_stub<int()> secret(peer_, "secret");
  EXPECT_EQ(secret(), 1);
  set_server(nullptr);
  EXPECT_EQ(outcome(peer_.start_call<int>("secret")), errc::no_such_name);
  EXPECT_EQ(outcome(secret.start()), errc::no_such_name);
  peer_.post_call<int>("secret");
  EXPECT_THAT(names(), IsEmpty());
  EXPECT_EQ(run_, 1);
}

TEST_F(CallRules, CountWhenTheArgumentsAreThere) {
  auto refused = peer_.start_call<std::uint64_t>("take", test::pattern(300'000, 1));
  ASSERT_TRUE(until([&] { return serves_.under_way() == 1; }));
  rules_.hidden = {"take"};
  EXPECT_EQ(outcome(std::move(refused)), errc::no_such_name);
  EXPECT_EQ(run_, 0);
}

TEST_F(CallRules, LeaveACallThatHasBegun) {
  auto asked = peer_.start_call<int>("later");
  ASSERT_TRUE(until([&] { return waiting_.size() == 1; }));
  rules_.hidden = {"later"};
  waiting_[0].send(call_writer().integer(5));
  EXPECT_EQ(asked.result(), 5);
}

TEST_F(CallRules, TellTheAuditHowCallsEnd) {
  const call_stub<int()> secret(peer_, "secret");
  secret();
  names();
  calls_.refuse([](const call_context&, std::string_view name) { return name == "secret"; });
  EXPECT_EQ(outcome(secret.start()), errc::permission_denied);
  rules_.hidden = {"secret"};
  EXPECT_EQ(outcome(secret.start()), errc::no_such_name);
  EXPECT_EQ(outcome(peer_.start_call<int>("secret")), errc::no_such_name);
  EXPECT_EQ(peer_.call<int>("add", 1, 2), 3);
  EXPECT_THAT(rules_.lines,
              ElementsAre("bind secret: ok", line("call secret", errc::permission_denied),
                          line("call secret", errc::no_such_name),
                          line("call secret", errc::no_such_name), "call add: ok"));
}

TEST_F(CallRules, TellTheAuditOfLaterAnswersWhenTheyAreGiven) {
  auto good = peer_.start_call<int>("later");
  auto failed = peer_.start_call<int>("later");
  auto dropped = peer_.start_call<int>("later");
  ASSERT_TRUE(until([&] { return waiting_.size() == 3; }));
  EXPECT_THAT(rules_.lines, IsEmpty());
  waiting_[0].send(call_writer().integer(5));
  EXPECT_FALSE(outcome(std::move(good)));
  waiting_[1].fail(std::make_exception_ptr(error(errc::busy, "words")));
  EXPECT_EQ(outcome(std::move(failed)), errc::call_failed);
  dropped.cancel();
  ASSERT_TRUE(until([&] { return waiting_[2].context().stop.stop_requested(); }));
  waiting_[2].send(call_writer().integer(5));
  both_.settle();
  EXPECT_THAT(rules_.lines, ElementsAre("call later: ok", line("call later", errc::call_failed),
                                        line("call later", errc::timed_out)));
}

TEST_F(CallRules, TellTheAuditOfLaterAnswersByNumberWhereTheyFail) {
  const call_stub<int()> later(peer_, "later");
  auto good = later.start();
  auto failed = later.start();
  auto left = later.start();
  ASSERT_TRUE(until([&] { return waiting_.size() == 3; }));
  waiting_[0].send(call_writer().integer(5));
  EXPECT_FALSE(outcome(std::move(good)));
  waiting_[1] = late_answer();
  EXPECT_EQ(outcome(std::move(failed)), errc::call_failed);
  serves_ = call_server();
  EXPECT_EQ(outcome(std::move(left)), errc::call_failed);
  EXPECT_THAT(rules_.lines, ElementsAre("bind later: ok", line("call later", errc::call_failed),
                                        line("call later", errc::call_failed)));
}

TEST_F(CallRules, TellTheAuditOfAnAnswerFromInsideOfTheFunction) {
  calls_.add_dynamic("at_once", "()->i32", [](call_context& call, call_reader&, call_writer&) {
    call.defer().send(call_writer().integer(5));
  });
  EXPECT_EQ(peer_.call<int>("at_once"), 5);
  EXPECT_THAT(rules_.lines, ElementsAre("call at_once: ok"));
}

}  // namespace
}  // namespace ucx::calls
