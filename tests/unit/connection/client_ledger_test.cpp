#include "connection/client_ledger.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/logger.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

const socket_address here("10.0.0.1:7");
const socket_address there("10.0.0.2:7");

class ClientLedger : public testing::Test {
 protected:
  using account = std::shared_ptr<client_account>;

  void limit(const server_limits& limits) {
    log_ = logger::make({.level = log_level::warning,
                         .sink = [this](log_level, std::string_view line) { told_ += line; }},
                        "test")
               .or_throw();
    ledger_ = std::make_shared<client_ledger>(limits, *log_);
  }
  account admit(const std::string& token, const socket_address& from = here) {
    const peer_identity who{.token = token};
    return ledger_->admit(&who, from);
  }
  account admit_user(const peer_identity& who) { return ledger_->admit(&who, {}); }

  std::string told_;
  std::unique_ptr<logger> log_;
  std::shared_ptr<client_ledger> ledger_;
};

TEST_F(ClientLedger, BoundsTheConnectionsOfAnIdentity) {
  limit({.per_identity = {.connections = 2}});
  std::vector<account> two{admit("a"), admit("a", there)};
  EXPECT_FALSE(two[0]->refusal().code);
  EXPECT_FALSE(two[1]->refusal().code);
  const account third = admit("a");
  EXPECT_EQ(third->refusal().code, errc::busy);
  EXPECT_THAT(third->refusal().text, HasSubstr("token \"a\" has as many connections"));
  EXPECT_THAT(told_, HasSubstr("token \"a\": refused"));
  EXPECT_FALSE(admit("b")->refusal().code) << "another one";
  two.pop_back();
  EXPECT_FALSE(admit("a")->refusal().code) << "one has ended";
}

TEST_F(ClientLedger, BoundsTheConnectionsOfAnAddress) {
  limit({.per_identity = {}, .per_address = {.connections = 1}});
  const account first = admit("a");
  EXPECT_EQ(admit("b")->refusal().code, errc::busy);
  EXPECT_FALSE(admit("b", there)->refusal().code);
  EXPECT_FALSE(admit_user({.user = 5})->refusal().code) << "a Unix socket has none";
  EXPECT_FALSE(admit_user({.user = 5})->refusal().code);
}

TEST_F(ClientLedger, BoundsTheConnectionsOfAll) {
  limit({.per_identity = {}, .in_all = {.connections = 2}});
  const std::vector<account> two{admit("a"), admit("b", there)};
  const account third = admit_user({.user = 5});
  EXPECT_EQ(third->refusal().code, errc::busy);
  EXPECT_THAT(third->refusal().text, HasSubstr("the server has as many"));
}

TEST_F(ClientLedger, TellsUsersTokensAndAddressesApart) {
  limit({.per_identity = {.connections = 1}});
  const std::vector<account> all{
      admit("a"),
      admit("b"),
      admit_user({.user = 5, .is_owner = true}),
      admit_user({.user = 6}),
      admit_user({.is_owner = true}),
      ledger_->admit(nullptr, here),
      ledger_->admit(nullptr, there),
      ledger_->admit(nullptr, {}),
      ledger_->admit(nullptr, socket_address("[2001:db8::1]:7")),
      ledger_->admit(nullptr, socket_address("[2001:db8:0:1::1]:7")),
  };
  for (const account& each : all) EXPECT_FALSE(each->refusal().code) << each->refusal().text;
  EXPECT_EQ(ledger_->admit(nullptr, {})->refusal().code, errc::busy);
  EXPECT_EQ(ledger_->admit(nullptr, here.with_port(9))->refusal().code, errc::busy);
  EXPECT_EQ(ledger_->admit(nullptr, socket_address("[::ffff:10.0.0.1]:7"))->refusal().code,
            errc::busy);
  EXPECT_EQ(ledger_->admit(nullptr, socket_address("[2001:db8::2]:7"))->refusal().code, errc::busy)
      << "the network is the owner's";
}

TEST_F(ClientLedger, RefusesSoManyWithWordsAndNoMore) {
  limit({.per_identity = {}, .in_all = {.connections = 1}});
  const account first = admit("a");
  std::vector<account> refused;
  for (std::size_t i = 0; i < client_ledger::most_refused; ++i) {
    refused.push_back(admit("a"));
    EXPECT_EQ(refused.back()->refusal().code, errc::busy);
    EXPECT_FALSE(refused.back()->is_one_too_many());
  }
  EXPECT_TRUE(admit("a")->is_one_too_many());
  refused.pop_back();
  EXPECT_FALSE(admit("a")->is_one_too_many());
}

TEST_F(ClientLedger, BoundsOpenNamesAndGivesThemBack) {
  limit({.per_identity = {.open_names = 2}});
  account one = admit("a");
  const account two = admit("a");
  for (const account& each : {one, two}) {
    EXPECT_FALSE(each->may_open());
    each->opened();
  }
  EXPECT_EQ(two->may_open(), errc::too_many_client_files);
  EXPECT_THAT(told_, HasSubstr("open names"));
  EXPECT_FALSE(admit("b")->may_open());
  two->closed();
  EXPECT_FALSE(two->may_open());
  two->opened();
  one.reset();
  EXPECT_FALSE(two->may_open()) << "the connection has ended";
}

TEST_F(ClientLedger, BoundsBytesInFlightButForALonelyRead) {
  limit({.per_identity = {}, .per_address = {.bytes_in_flight = 100}});
  const account one = admit("a");
  EXPECT_FALSE(one->may_send(1000)) << "it could never be sent";
  one->sends(60);
  EXPECT_FALSE(one->may_send(40));
  EXPECT_EQ(admit("b")->may_send(41), errc::busy);
  EXPECT_FALSE(admit("b", there)->may_send(41));
  one->sent(60);
  EXPECT_FALSE(admit("b")->may_send(100));
}

TEST_F(ClientLedger, BoundsTheRequestsOfASecond) {
  limit({.per_identity = {.requests_per_second = 10}});
  const account one = admit("a");
  const account two = admit("a");
  const clock::time_point now = clock::time_point() + 100s;
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(one->ask(now));
    EXPECT_FALSE(two->ask(now));
  }
  EXPECT_EQ(one->ask(now), errc::busy);
  EXPECT_EQ(two->ask(now - 1s), errc::busy) << "a clock that was looked at before";
  EXPECT_FALSE(admit("b")->ask(now));
  EXPECT_FALSE(two->ask(now + 150ms));
  EXPECT_EQ(two->ask(now + 150ms), errc::busy);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(one->ask(now + 1h));
  EXPECT_EQ(one->ask(now + 1h), errc::busy) << "a second's worth is kept, and no more";
}

TEST_F(ClientLedger, TellsTenLinesASecond) {
  limit({.per_identity = {}, .in_all = {.connections = 1}});
  const account first = admit("a");
  for (int i = 0; i < 1000; ++i) admit("b");
  std::size_t lines = 0;
  for (std::size_t at = 0; (at = told_.find("refused", at)) != std::string::npos; ++at) ++lines;
  EXPECT_GE(lines, 10U);
  EXPECT_LT(lines, 1000U);
}

TEST_F(ClientLedger, HasNoBoundWhereThatIsZero) {
  limit({.per_identity = {}});
  std::vector<account> many;
  for (int i = 0; i < 1000; ++i) {
    many.push_back(admit("a"));
    EXPECT_FALSE(many.back()->refusal().code);
    EXPECT_FALSE(many.back()->may_open());
    many.back()->opened();
    EXPECT_FALSE(many.back()->ask(clock::time_point()));
    EXPECT_FALSE(many.back()->may_send(~std::uint64_t{0}));
    many.back()->sends(1);
  }
}

}  // namespace
}  // namespace ucx::detail
