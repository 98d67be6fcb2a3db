// Both sides of the control protocol, over a channel that a test is in the middle of.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "client/client_session.hpp"
#include "file/file_watcher.hpp"
#include "server/catalogue.hpp"
#include "server/server_core.hpp"
#include "server/server_session.hpp"
#include "support/simulated/simulated_server.hpp"
#include "ucx/access_rules.hpp"
#include "ucx/error.hpp"
#include "ucx/publication.hpp"
#include "ucx/remote_descriptor.hpp"
#include "wire/frame.hpp"
#include "worker/core_access.hpp"

namespace ucx::detail {
namespace {

using packed = std::vector<std::byte>;

/// Keeps what is sent, and the reason why it was ended.
struct kept {
  std::vector<packed> sent;
  std::error_code blamed;
  std::size_t unsent = 0;
  peer_reach reach;
  peer_facts facts;
  std::map<std::uint64_t, access> grants;
  bool left = false;  // all grants were ended at once
  std::vector<move_only_handler<>> turns;
};

class kept_channel final : public channel {
 public:
  explicit kept_channel(kept& by) : kept_(by) {}
  void send(std::span<const std::byte> bytes) override {
    kept_.sent.emplace_back(bytes.begin(), bytes.end());
  }
  std::size_t longest() const noexcept override { return 2000; }
  std::size_t unsent() const noexcept override { return kept_.unsent; }
  void take_turn(move_only_handler<> work) override { kept_.turns.push_back(std::move(work)); }
  void blame(std::error_code why, const std::string&) override { kept_.blamed = why; }
  peer_reach reach() const noexcept override { return kept_.reach; }
  peer_facts facts() const override { return kept_.facts; }
  void grant(std::uint64_t region, access rights) override { kept_.grants[region] = rights; }
  void end_grant(std::uint64_t region) noexcept override { kept_.grants.erase(region); }
  void end_grants() noexcept override {
    kept_.grants.clear();
    kept_.left = true;
  }

 private:
  kept& kept_;
};

control_header asking(control_type type, std::uint64_t request) {
  control_header made;
  made.type = type;
  made.request = request;
  return made;
}

class ServerSession : public testing::Test {
 protected:
  ServerSession() { counters_.most = 2; }

  std::unique_ptr<server_session> make() {
    return std::make_unique<server_session>(std::make_unique<kept_channel>(kept_), names_, watcher_,
                                            hasher_, counters_, session_policy(),
                                            [this] { ++ends_; });
  }
  /// Returns the header of the newest answer.
  control_header answer() const {
    EXPECT_FALSE(kept_.sent.empty());
    return kept_.sent.empty() ? control_header() : *decode_control(kept_.sent.back());
  }
  std::error_code answered() const { return status_error(answer().status); }

  kept kept_;
  catalogue names_;
  file_watcher watcher_{[](const disk_queue::answer& answer) { answer(); }};
  file_hasher hasher_{[](const disk_queue::answer& answer) { answer(); }};
  session_counters counters_;
  int ends_ = 0;
};

/// A session of a server whose rules show one name of many.
class HiddenNames : public ServerSession {
 protected:
  static constexpr int names = 1000;

  HiddenNames() {
    for (int i = 0; i < names; ++i) shown_.push_back(publish("hidden " + std::to_string(i)));
    shown_.push_back(publish("visible"));
    policy_.rules =
        core_access::lines(access_rules().allow("anybody", access_right::list, "visible"));
    session_ = std::make_unique<server_session>(
        std::make_unique<kept_channel>(kept_), core_access::core(served_.server())->names(),
        watcher_, hasher_, counters_, policy_, [this] { ++ends_; });
    session_->received(encode_control(asking(control_type::hello, 5), hello_body{}));
    kept_.sent.clear();
  }
  publication publish(const std::string& name) {
    return served_.server().publish(name, std::span<const std::byte>(memory_));
  }
  void list(std::uint64_t request) {
    session_->received(encode_control(asking(control_type::list, request), list_body{}));
  }
  /// Has the client its turn once; returns whether there was something to do.
  bool take_turn() {
    if (kept_.turns.empty()) return false;
    move_only_handler<> next = std::move(kept_.turns.front());
    kept_.turns.erase(kept_.turns.begin());
    next();
    return true;
  }

  test::simulated_server served_;
  const std::vector<std::byte> memory_{8};
  std::vector<publication> shown_;
  session_policy policy_;
  std::unique_ptr<server_session> session_;
};

TEST_F(HiddenNames, ArePassedOverSomeAtATime) {
  list(6);
  std::size_t turns = 0;
  for (; kept_.sent.empty() && take_turn(); ++turns) {
  }
  EXPECT_EQ(turns, names / catalogue::most_passed_over);
  ASSERT_EQ(kept_.sent.size(), 1U);
  const auto listed = decode_listed(kept_.sent.front());
  ASSERT_TRUE(listed);
  ASSERT_EQ(listed->entries.size(), 1U);
  EXPECT_EQ(listed->entries.front().name, "visible");
  EXPECT_FALSE(listed->more);
  EXPECT_EQ(answer().request, 6U);
}

TEST_F(HiddenNames, DelayOnlySoManyLists) {
  for (std::uint64_t request = 10; kept_.sent.empty() && request < 1000; ++request) list(request);
  EXPECT_EQ(answered(), errc::busy);
  EXPECT_EQ(kept_.turns.size(), 64U);
  const std::size_t refused = kept_.sent.size();
  while (take_turn()) {
  }
  EXPECT_EQ(kept_.sent.size(), refused + 64);
  EXPECT_FALSE(answered());
}

TEST_F(HiddenNames, AreForgottenWithTheirClient) {
  list(6);
  list(7);
  session_->received(encode_control(asking(control_type::bye, 8)));
  EXPECT_TRUE(take_turn());
  session_.reset();
  EXPECT_TRUE(take_turn());
  EXPECT_TRUE(kept_.sent.empty());
}

TEST_F(ServerSession, GreetsOnce) {
  const auto session = make();
  session->received(encode_control(asking(control_type::hello, 5), hello_body{}));
  EXPECT_EQ(answer().type, control_type::welcome);
  EXPECT_EQ(answer().request, 5U);
  EXPECT_FALSE(answered());
  EXPECT_EQ(counters_.greeted, 1U);
  session->received(encode_control(asking(control_type::hello, 6), hello_body{}));
  EXPECT_EQ(kept_.blamed, errc::protocol_error);
}

TEST_F(ServerSession, BlamesWhoResizesAFileByItsNumberAndAName) {
  const auto session = make();
  session->received(encode_control(asking(control_type::hello, 5), hello_body{}));
  session->received(encode_control(asking(control_type::resize, 6), resize_body{"", 1, 7}));
  EXPECT_EQ(answered(), errc::no_such_region);
  EXPECT_FALSE(kept_.blamed);
  const std::size_t sent = kept_.sent.size();
  session->received(encode_control(asking(control_type::resize, 7), resize_body{"x", 1, 7}));
  EXPECT_EQ(kept_.blamed, errc::protocol_error);
  EXPECT_EQ(kept_.sent.size(), sent) << "no word of the name";
}

TEST_F(ServerSession, RefusesOtherVersionsAndSaysItsOwn) {
  for (const auto& [oldest, newest] :
       {std::pair<std::uint32_t, std::uint32_t>{2, 9}, {0, 0}, {5, 1}}) {
    const auto session = make();
    session->received(
        encode_control(asking(control_type::hello, 1), hello_body{oldest, newest, "x", 0}));
    EXPECT_EQ(answered(), errc::version_mismatch);
    EXPECT_EQ(decode_welcome(kept_.sent.back())->version, control_version);
    const std::size_t sent = kept_.sent.size();
    session->received(encode_control(asking(control_type::list, 2), list_body{}));
    EXPECT_EQ(kept_.sent.size(), sent);
  }
  EXPECT_EQ(counters_.greeted, 0U);
  const auto session = make();
  session->received(encode_control(asking(control_type::hello, 1), hello_body{0, 7, "x", 0}));
  EXPECT_FALSE(answered());
}

TEST_F(ServerSession, RefusesMoreClientsThanItTakes) {
  auto first = make();
  const auto second = make();
  first->received(encode_control(asking(control_type::hello, 1), hello_body{}));
  second->received(encode_control(asking(control_type::hello, 1), hello_body{}));
  const auto third = make();
  third->received(encode_control(asking(control_type::hello, 1), hello_body{}));
  EXPECT_EQ(answered(), errc::busy);
  first.reset();
  const auto fourth = make();
  fourth->received(encode_control(asking(control_type::hello, 1), hello_body{}));
  EXPECT_FALSE(answered());
  EXPECT_EQ(counters_.served, 3U);
}

TEST_F(ServerSession, TakesNothingBeforeHello) {
  for (const auto& early : {encode_control(asking(control_type::list, 1), list_body{}),
                            encode_control(asking(control_type::open, 1), open_body{"a"}),
                            encode_control(asking(control_type::stat, 1), stat_body{"a"}),
                            encode_control(asking(control_type::measure, 1), measure_body{}),
                            encode_control(asking(control_type::digest, 1), digest_body{}),
                            encode_control(asking(control_type::bye, 1))}) {
    kept_ = {};
    const auto session = make();
    session->received(early);
    EXPECT_EQ(kept_.blamed, errc::protocol_error);
    EXPECT_TRUE(kept_.sent.empty());
  }
}

TEST_F(ServerSession, KnowsNoUnknownName) {
  const auto session = make();
  session->received(encode_control(asking(control_type::hello, 1), hello_body{}));
  session->received(encode_control(asking(control_type::open, 2), open_body{"nothing"}));
  EXPECT_EQ(answer().type, control_type::opened);
  EXPECT_EQ(answered(), errc::no_such_name);
  session->received(encode_control(asking(control_type::stat, 3), stat_body{""}));
  EXPECT_EQ(answer().type, control_type::described);
  EXPECT_EQ(answered(), errc::no_such_name);
  session->received(encode_control(asking(control_type::list, 4), list_body{}));
  ASSERT_TRUE(decode_listed(kept_.sent.back()));
  EXPECT_TRUE(decode_listed(kept_.sent.back())->entries.empty());
  EXPECT_EQ(counters_.refusals, 2U);
}

TEST_F(ServerSession, MeasuresNothingThatIsNotOpen) {
  const auto session = make();
  session->received(encode_control(asking(control_type::hello, 1), hello_body{}));
  session->received(encode_control(asking(control_type::measure, 2), measure_body{1, 2, 3}));
  EXPECT_EQ(answer().type, control_type::described);
  EXPECT_EQ(answered(), errc::no_such_region);
  EXPECT_FALSE(kept_.blamed);
}

TEST_F(ServerSession, HashesNothingThatIsNotOpen) {
  const auto session = make();
  session->received(encode_control(asking(control_type::hello, 1), hello_body{}));
  session->received(encode_control(asking(control_type::digest, 2), digest_body{1, 0, 3, 1}));
  EXPECT_EQ(answer().type, control_type::digested);
  EXPECT_EQ(answered(), errc::no_such_region);
  EXPECT_FALSE(kept_.blamed);
}

TEST_F(ServerSession, TellsWhichFeaturesBothHave) {
  const auto session = make();
  hello_body hello;
  hello.features = control_feature::measuring | 1024;
  session->received(encode_control(asking(control_type::hello, 1), hello));
  EXPECT_EQ(decode_welcome(kept_.sent.back())->features, control_feature::measuring);
}

TEST_F(ServerSession, EndsAPeerThatSendsAnswersOrNonsense) {
  for (const auto& wrong :
       {encode_control(asking(control_type::welcome, 1), welcome_body{}),
        encode_control(asking(control_type::listed, 1), listed_body{}),
        encode_control(asking(control_type::revoke, 1), revoke_body{}),
        encode_control(asking(control_type::measure, 1)),
        encode_control(asking(control_type::digest, 1)),
        encode_control(asking(control_type::digested, 1), digested_body{}),
        encode_control(asking(control_type::open, 1)), packed{}, packed(16, std::byte{0})}) {
    kept_ = {};
    const auto session = make();
    session->received(encode_control(asking(control_type::hello, 1), hello_body{}));
    session->received(wrong);
    EXPECT_EQ(kept_.blamed, errc::protocol_error);
  }
}

TEST_F(ServerSession, EndsAPeerThatTakesNoAnswers) {
  const auto session = make();
  session->received(encode_control(asking(control_type::hello, 1), hello_body{}));
  kept_.unsent = (std::size_t{16} << 20U) + 1;
  session->received(encode_control(asking(control_type::list, 1), list_body{}));
  EXPECT_EQ(kept_.blamed, errc::protocol_error);
}

TEST_F(ServerSession, ForgetsItsClientAtByeAndAtTheEnd) {
  const auto polite = make();
  polite->received(encode_control(asking(control_type::hello, 1), hello_body{}));
  EXPECT_EQ(counters_.greeted, 1U);
  polite->received(encode_control(asking(control_type::bye, 0)));
  EXPECT_TRUE(kept_.left);
  EXPECT_EQ(counters_.greeted, 0U);
  polite->ended(errc::connection_reset);
  EXPECT_EQ(ends_, 1);
  auto rude = make();
  rude->received(encode_control(asking(control_type::hello, 1), hello_body{}));
  rude->ended(errc::connection_reset);
  EXPECT_EQ(ends_, 2);
  rude.reset();
  EXPECT_EQ(counters_.greeted, 0U);
}

TEST_F(ServerSession, SurvivesEveryMessageInEveryState) {
  std::mt19937_64 random(3);
  const std::vector<packed> vocabulary{
      encode_control(asking(control_type::hello, 1), hello_body{}),
      encode_control(asking(control_type::open, 2), open_body{"a"}),
      encode_control(asking(control_type::stat, 3), stat_body{"a"}),
      encode_control(asking(control_type::list, 4), list_body{"a"}),
      encode_control(asking(control_type::measure, 5), measure_body{1, 1, 1}),
      encode_control(asking(control_type::digest, 6), digest_body{1, 0, 1, 1}),
      encode_control(asking(control_type::revoke, 0), revoke_body{1, "a"}),
      encode_control(asking(control_type::bye, 0))};
  for (int round = 0; round < 3000; ++round) {
    kept_ = {};
    const auto session = make();
    for (int step = 0; step < 8 && !kept_.blamed; ++step) {
      packed next = vocabulary[random() % vocabulary.size()];
      if (random() % 4 == 0) next[random() % next.size()] ^= static_cast<std::byte>(random());
      session->received(next);
    }
    session->ended(errc::connection_reset);
  }
  EXPECT_EQ(counters_.greeted, 0U);
}

class ClientSession : public testing::Test {
 protected:
  using question = client_session::question;

  question ask() {
    question made;
    made.answer_type = control_type::described;
    return made;
  }
  packed answer_to(const question& asked, control_type type = control_type::described) {
    control_header made;
    made.type = type;
    made.request = asked.id;
    made.status = error_status(errc::no_such_name);
    return encode_control(made);
  }

  kept kept_;
  kept_channel channel_{kept_};
  std::vector<std::uint64_t> revoked_;
  client_session session_{channel_, [this](std::uint64_t region) { revoked_.push_back(region); }};
};

TEST_F(ClientSession, FindsTheQuestionOfAnAnswer) {
  question first = ask();
  question second = ask();
  session_.ask(first, control_type::stat, stat_body{"a"});
  session_.ask(second, control_type::stat, stat_body{"b"});
  ASSERT_EQ(kept_.sent.size(), 2U);
  session_.received(answer_to(second));
  EXPECT_FALSE(first.done);
  EXPECT_TRUE(second.done);
  EXPECT_EQ(second.outcome, errc::no_such_name);
  session_.received(answer_to(second));  // twice: nobody waits for it
  session_.received(answer_to(first));
  EXPECT_TRUE(first.done);
  EXPECT_FALSE(kept_.blamed);
}

TEST_F(ClientSession, DropsAnswersToForgottenQuestions) {
  question asked = ask();
  session_.ask(asked, control_type::stat, stat_body{"a"});
  session_.forget(asked);
  session_.received(answer_to(asked));
  EXPECT_FALSE(asked.done);
  EXPECT_FALSE(kept_.blamed);
}

TEST_F(ClientSession, ReleasesWhatWasOpenedTooLate) {
  question asked = ask();
  asked.answer_type = control_type::opened;
  session_.ask(asked, control_type::open, open_body{"a"});
  session_.forget(asked);
  control_header late;
  late.type = control_type::opened;
  late.request = asked.id;
  remote_descriptor descriptor;
  descriptor.region = 33;
  opened_body body;
  body.described.name = "a";
  body.descriptor = descriptor.encode();
  session_.received(encode_control(late, body));
  EXPECT_EQ(kept_.sent.size(), 1U);  // it is nobody's alone
  body.held = true;
  session_.received(encode_control(late, body));
  ASSERT_EQ(kept_.sent.size(), 2U);
  const auto released = decode_release(kept_.sent.back());
  ASSERT_TRUE(released);
  EXPECT_EQ(released->region, 33U);
  body.descriptor = {std::byte{1}};
  session_.received(encode_control(late, body));
  EXPECT_EQ(kept_.sent.size(), 2U);
  EXPECT_FALSE(kept_.blamed);
}

TEST_F(ClientSession, TakesAGeneralRefusalOfWhatTheServerDoesNotKnow) {
  question asked = ask();
  session_.ask(asked, control_type::stat, stat_body{"a"});
  session_.received(answer_to(asked, control_type::done));
  EXPECT_TRUE(asked.done);
  EXPECT_FALSE(kept_.blamed);
}

TEST_F(ServerSession, AnswersWhatOnlyALaterVersionKnows) {
  const auto session = make();
  session->received(encode_control(asking(control_type::hello, 1),
                                   hello_body{.features = control_feature::stores | 1024U}));
  EXPECT_EQ(decode_welcome(kept_.sent.back())->features, control_feature::stores);
  packed later = encode_control(asking(control_type::remove, 2), remove_body{"a"});
  session->received(later);
  EXPECT_EQ(answer().type, control_type::done);
  EXPECT_EQ(answered(), errc::no_such_name);
  later[3] = std::byte{99};
  session->received(later);
  EXPECT_EQ(answer().type, control_type::done);
  EXPECT_EQ(answered(), errc::not_supported);
  EXPECT_FALSE(kept_.blamed);
  for (const auto& none : {encode_control(asking(control_type::create, 3)),
                           encode_control(asking(control_type::resize, 3), remove_body{"a"})}) {
    kept_.blamed.clear();
    session->received(none);
    EXPECT_EQ(kept_.blamed, errc::protocol_error);
  }
}

TEST_F(ClientSession, EndsAServerThatAnswersAnotherQuestion) {
  question asked = ask();
  session_.ask(asked, control_type::stat, stat_body{"a"});
  session_.received(answer_to(asked, control_type::listed));
  EXPECT_EQ(kept_.blamed, errc::protocol_error);
  session_.ended(errc::protocol_error);
  EXPECT_TRUE(asked.done);
  EXPECT_EQ(asked.outcome, errc::protocol_error);
}

TEST_F(ClientSession, EndsEveryQuestionWithTheChannel) {
  std::vector<question> asked(100, ask());
  for (question& each : asked) session_.ask(each, control_type::stat, stat_body{"a"});
  session_.ended(errc::connection_reset);
  for (const question& each : asked) {
    EXPECT_TRUE(each.done);
    EXPECT_EQ(each.outcome, errc::connection_reset);
  }
  question late = ask();
  session_.ask(late, control_type::stat, stat_body{"a"});
  EXPECT_TRUE(late.done);
  EXPECT_EQ(late.outcome, errc::connection_reset);
  EXPECT_EQ(kept_.sent.size(), 100U);
}

TEST_F(ClientSession, TellsOfRevocationsAndOfTheServersEnd) {
  control_header told;
  told.type = control_type::revoke;
  session_.received(encode_control(told, revoke_body{42, "a"}));
  EXPECT_EQ(revoked_, std::vector<std::uint64_t>{42});
  question asked = ask();
  session_.ask(asked, control_type::stat, stat_body{"a"});
  session_.received(encode_control(control_header{}));
  EXPECT_TRUE(session_.over());
  EXPECT_EQ(asked.outcome, errc::connection_reset);
  EXPECT_EQ(kept_.blamed, errc::connection_reset);
}

TEST_F(ClientSession, LeavesOnce) {
  session_.leave();
  session_.leave();
  ASSERT_EQ(kept_.sent.size(), 1U);
  EXPECT_EQ(decode_control(kept_.sent[0])->type, control_type::bye);
  EXPECT_EQ(session_.why(), errc::closed);
}

TEST_F(ClientSession, EndsAServerThatSendsNonsense) {
  session_.received(packed(5, std::byte{1}));
  EXPECT_EQ(kept_.blamed, errc::protocol_error);
}

}  // namespace
}  // namespace ucx::detail
