// Clients that act for others by tickets, at a server by TLS with two tokens. All are of this
// process, so they are owners: lines that deny tell them apart.
#include "ucx/ticket.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <ios>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/basics/soon.hpp"
#include "support/files/temporary_directory.hpp"
#include "ucx/client.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/entry.hpp"
#include "ucx/error.hpp"
#include "ucx/message.hpp"
#include "ucx/pipe_broker.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/rpc.hpp"
#include "ucx/server.hpp"
#include "ucx/token_file.hpp"
#include "ucx/url.hpp"

namespace ucx::test {
namespace {

using testing::HasSubstr;
using right = access_right;

/// Derived by another program, of a key and a ticket that a test has.
constexpr const char* bound_text = "4e808aec0ae17541ada31537d3700c54";

constexpr const char* shown_names[] = {"for alice", "for bob", "for both"};

std::vector<std::string> names_for(client& by) {
  std::vector<std::string> names;
  for (entry& each : by.list()) names.push_back(std::move(each.name));
  return names;
}

class Ticket : public testing::Test {
 protected:
  explicit Ticket(std::size_t workers = 1) : served_(serve(workers)) {
    for (const char* each : shown_names) {
      published_.push_back(served_.publish(each, std::span(bytes_), access::read_write));
    }
  }

  /// `who` is of a token of the server.
  context_options options_of(const std::string& who) const {
    context_options made{.share_memory = false};
    made.token_file = folder_ / who;
    return made;
  }
  client client_of(const std::string& who) const {
    return client(url(served_.url()), {.context = options_of(who)});
  }
  client acting(const ticket& shown) const {
    return shown.connect(url(served_.url()), {.context = options_of("bob")});
  }
  std::error_code refusal_of(const ticket& shown) const {
    std::error_code ec;
    const client none = shown.connect(url(served_.url()), {.context = options_of("bob")}, ec);
    return ec;
  }
  static std::error_code outcome_of_opening(client& by, const std::string& name) {
    std::error_code ec;
    const remote_region opened = by.open(name, access::read, {}, ec);
    return ec;
  }
  /// Expects that the connections of bob that act end without blame, with this outcome.
  void expect_in_audit(const std::string& outcome) const {
    EXPECT_TRUE(soon([&] {
      std::istringstream lines(content_of(folder_ / "audit"));
      for (std::string line; std::getline(lines, line);) {
        if (line.find("\"disconnect\"") != line.npos && line.find("\"for\"") != line.npos &&
            line.find("\"outcome\":\"" + outcome + '"') != line.npos) {
          return true;
        }
      }
      return false;
    })) << content_of(folder_ / "audit");
    EXPECT_EQ(content_of(folder_ / "audit").find("\"blame\""), std::string::npos);
  }
  /// Expects that the connection ends.
  static void expect_end(client& of) {
    EXPECT_TRUE(soon([&] {
      std::error_code ec;
      static_cast<void>(of.list({}, ec));
      return static_cast<bool>(ec);
    }));
  }

  static access_rules rules() {
    return access_rules()
        .deny("token alice", right::all, "for bob")
        .deny("token bob", right::all, "for alice");
  }

  const temporary_directory folder_;
  std::array<std::byte, 64> bytes_ = {};
  server served_;
  std::vector<publication> published_;

 private:
  server serve(std::size_t workers) {
    for (const std::string who : {"alice", "bob"}) {
      token_file(folder_ / who).add("127.0.0.1", token_file(folder_ / "servers").create(who));
    }
    context_options chosen = options_of("servers");
    chosen.transports = {"tls"};
    return server({.bind = "127.0.0.1:0",
                   .context = chosen,
                   .workers = workers,
                   .rules = rules(),
                   .audit_file = folder_ / "audit"});
  }
};

class TicketOfWorkers : public Ticket {
 protected:
  TicketOfWorkers() : Ticket(3) {}
};

TEST_F(Ticket, LeavesOutFunctionsThatOneMayNotCall) {
  served_.set_rules(access_rules()
                        .deny("token alice", right::call, "of_bob")
                        .deny("token bob", right::call, "of_alice"));
  call_table calls;
  for (const char* each : {"of_alice", "of_bob", "of_both"}) calls.add(each, [] { return 1; });
  const call_server serves(served_, calls);
  client alice = client_of("alice");
  const ticket lent;
  lent.lend(alice);
  const client both = acting(lent);
  const call_channel peer(both.connection());
  EXPECT_EQ(peer.call<int>("of_both"), 1);
  for (const char* each : {"of_alice", "of_bob"}) {
    std::error_code ec;
    peer.start_call<int>(each).result(ec);
    EXPECT_EQ(ec, errc::no_such_name) << each;
  }
  EXPECT_EQ(peer.signatures().size(), 1U);
}

TEST_F(Ticket, GivesTheRightsThatBothHave) {
  client alice = client_of("alice");
  const ticket lent;
  lent.lend(alice);
  client bob = acting(ticket::parse(lent.text()));
  EXPECT_EQ(bob.identity(), "owner, token \"bob\" for owner, token \"alice\"");
  EXPECT_EQ(names_for(bob), std::vector<std::string>{"for both"});
  EXPECT_FALSE(outcome_of_opening(bob, "for both"));
  EXPECT_EQ(outcome_of_opening(bob, "for bob"), errc::no_such_name);
  EXPECT_EQ(outcome_of_opening(bob, "for alice"), errc::no_such_name);
  EXPECT_EQ(outcome_of_opening(bob, "nothing"), errc::no_such_name);
  EXPECT_EQ(bob.exists("for bob"), false);
  EXPECT_TRUE(soon([&] {
    return content_of(folder_ / "audit")
               .find(
                   "\"who\":\"owner, token \\\"bob\\\"\",\"for\":\"owner, token "
                   "\\\"alice\\\"\"") != std::string::npos;
  }));
}

TEST_F(Ticket, CountsOnceAtOneServer) {
  EXPECT_EQ(refusal_of(ticket()), errc::permission_denied);
  client alice = client_of("alice");
  const ticket lent;
  lent.lend(alice);
  context_options chosen = options_of("servers");
  chosen.transports = {"tls"};
  const server another({.bind = "127.0.0.1:0", .context = chosen});
  std::error_code ec;
  const client none = lent.connect(url(another.url()), {.context = options_of("bob")}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
  const client first = acting(lent);
  EXPECT_EQ(refusal_of(lent), errc::permission_denied);
  lent.lend(alice, {}, ec);
  EXPECT_FALSE(ec) << "what was shown is forgotten";
  lent.lend(alice, {}, ec);
  EXPECT_EQ(ec, errc::already_exists);
  for (int i = 0; i < 63; ++i) ticket().lend(alice);
  ticket().lend(alice, {}, ec);
  EXPECT_EQ(ec, errc::busy);
}

TEST_F(Ticket, IsNotLentByAClientThatActsForAnother) {
  client alice = client_of("alice");
  const ticket lent;
  lent.lend(alice);
  client bob = acting(lent);
  std::error_code ec;
  ticket().lend(bob, {}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
}

TEST_F(Ticket, IsBoundToAKeyOnly) {
  const ticket told;
  std::error_code ec;
  const ticket none = told.bound_to({}, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  const std::array<std::byte, 15> shorter = {};
  static_cast<void>(told.bound_to(shorter, ec));
  EXPECT_EQ(ec, errc::invalid_argument);
  client alice = client_of("alice");
  none.lend(alice, {}, ec);
  EXPECT_EQ(ec, errc::invalid_argument) << "it has no bits";
  EXPECT_EQ(refusal_of(none), errc::permission_denied);
  // RFC 5869, without salt.
  const ticket known = ticket::parse("000102030405060708090a0b0c0d0e0f");
  const std::array<std::byte, 16> key{std::byte{1}, std::byte{2}, std::byte{3}};
  EXPECT_EQ(known.bound_to(key).text(), bound_text);
}

/// What a service at the server learns of a peer.
class TicketAtService : public Ticket {
 protected:
  struct learnt {
    bool of_alice = false;
    bool of_bob = false;
    bool of_both = false;
    std::vector<std::error_code> taken;  // of tickets for the peer, twice the same and then others
  };
  learnt ask(client& by) {
    std::promise<learnt> told;
    std::future<learnt> heard = told.get_future();
    served_.worker().on_message(service, [&told](const message& question) {
      const endpoint peer = question.peer();
      learnt made{peer.is_allowed(right::read, "for alice"),
                  peer.is_allowed(right::read, "for bob"),
                  peer.is_allowed(right::read, "for both"),
                  {}};
      const ticket first;
      for (int i = 0; i < 66; ++i) {
        (i < 2 ? first : ticket()).expect(peer, peer, right::none, "", made.taken.emplace_back());
      }
      told.set_value(std::move(made));
    });
    const std::array<std::byte, 1> nothing = {};
    by.connection().send(active_message{service}, std::span(nothing));
    const bool came = heard.wait_for(std::chrono::seconds(30)) == std::future_status::ready;
    EXPECT_TRUE(came);
    served_.worker().on_message(service, {});
    return came ? heard.get() : learnt();
  }
  static constexpr std::uint64_t service = 77;
};

TEST_F(TicketAtService, MayWhatBothMay) {
  client alice = client_of("alice");
  const ticket lent;
  lent.lend(alice);
  client acts = acting(lent);
  const learnt of_both = ask(acts);
  EXPECT_TRUE(of_both.of_both);
  EXPECT_FALSE(of_both.of_alice);
  EXPECT_FALSE(of_both.of_bob);
  EXPECT_THAT(of_both.taken, testing::Each(make_error_code(errc::closed_by_peer)))
      << "one that acts has no tickets";
  client bob = client_of("bob");
  const learnt of_bob = ask(bob);
  EXPECT_TRUE(of_bob.of_both);
  EXPECT_FALSE(of_bob.of_alice);
  EXPECT_TRUE(of_bob.of_bob);
  EXPECT_EQ(of_bob.taken[0], std::error_code());
  EXPECT_EQ(of_bob.taken[1], errc::already_exists);
  EXPECT_EQ(of_bob.taken.back(), errc::busy);
}

TEST_F(TicketOfWorkers, EndsWithItsLender) {
  for (int i = 0; i < 3; ++i) {  // the workers take clients in turn
    client alice = client_of("alice");
    const ticket shown;
    const ticket unshown;
    shown.lend(alice);
    unshown.lend(alice);
    client bob = acting(shown);
    remote_region opened = bob.open("for both");
    alice.close();
    expect_end(bob);
    std::error_code ec;
    std::array<std::byte, 8> into = {};
    opened.read_at(0, into, {}, ec);
    EXPECT_TRUE(ec);
    EXPECT_EQ(refusal_of(unshown), errc::permission_denied);
  }
  expect_in_audit("ok");
}

TEST_F(TicketOfWorkers, FollowsTheRulesOfItsLender) {
  client alice = client_of("alice");
  const ticket lent;
  lent.lend(alice);
  client bob = acting(lent);
  remote_region opened = bob.open("for both");
  std::array<std::byte, 8> into = {};
  opened.read_at(0, into);
  served_.set_rules(rules().deny("token alice", right::read, "for both"));
  EXPECT_TRUE(soon([&] {
    std::error_code ec;
    opened.read_at(0, into, {}, ec);
    return ec == errc::revoked;
  }));
  EXPECT_EQ(outcome_of_opening(bob, "for both"), errc::permission_denied);
}

TEST_F(Ticket, EndsWithTheTokenOfItsLender) {
  client alice = client_of("alice");
  const ticket lent;
  lent.lend(alice);
  client bob = acting(lent);
  client other = client_of("bob");
  token_file(folder_ / "servers").remove("alice");
  expect_end(bob);
  EXPECT_EQ(other.list().size(), 2U);
}

TEST_F(Ticket, IsReadAsItIsWritten) {
  const ticket made;
  EXPECT_EQ(ticket::parse(made.text()).text(), made.text());
  EXPECT_NE(ticket().text(), made.text());
  for (const std::string& wrong : {std::string(), std::string(31, '0'), std::string(33, '0'),
                                   std::string(32, 'A'), std::string(32, ' ')}) {
    std::error_code ec;
    static_cast<void>(ticket::parse(wrong, ec));
    EXPECT_EQ(ec, errc::invalid_argument) << wrong;
  }
  client none;
  std::error_code ec;
  made.lend(none, {}, ec);
  EXPECT_EQ(ec, errc::closed);
  client alice = client_of("alice");
  const endpoint by = alice.connection();
  made.expect(by, by, right::agent, "name", ec);
  EXPECT_EQ(ec, errc::not_supported) << "there is no server at this side";
}

/// The ends of a conversation with an agent, which is bob.
class TicketOfMeeting : public Ticket {
 protected:
  TicketOfMeeting() : broker_(served_) {}

  pipe_streambuf end_of(const std::string& who, const std::string& name) const {
    pipe_options options;
    options.context = options_of(who);
    return {url(served_.url(name)), std::ios_base::in | std::ios_base::out, options};
  }
  struct conversation {
    std::optional<pipe_streambuf> clients;
    std::optional<pipe_streambuf> agents;
  };
  /// Both meet there.
  void meet(conversation& met, const std::string& name) const {
    auto agents = std::async(std::launch::async, [&] { return end_of("bob", name); });
    met.clients.emplace(end_of("alice", name));
    met.agents.emplace(agents.get());
  }
  static ticket ticket_of(const pipe_streambuf& end) {
    return ticket(end.meeting_key().first<ticket::size>());
  }

  pipe_broker broker_;
};

TEST_F(TicketOfMeeting, StandsForBothEndsWhileTheyAreThere) {
  conversation met;
  meet(met, ".ucxio-agent/call");
  EXPECT_EQ(ticket_of(*met.clients).text(), ticket_of(*met.agents).text());
  client acts = acting(ticket_of(*met.agents));
  EXPECT_EQ(names_for(acts), std::vector<std::string>{"for both"});
  EXPECT_EQ(refusal_of(ticket_of(*met.clients)), errc::permission_denied);
  met.clients.reset();
  expect_end(acts);
}

TEST_F(TicketOfMeeting, CountsWhileTheAgentMayBeCalled) {
  conversation met;
  meet(met, ".ucxio-agent/call");
  client acts = acting(ticket_of(*met.agents));
  served_.set_rules(rules().deny("token alice", right::agent));
  expect_end(acts);
  expect_in_audit("revoked");
}

TEST_F(TicketOfMeeting, IsOfOneConversation) {
  conversation first;
  meet(first, ".ucxio-agent/first");
  conversation second;
  meet(second, ".ucxio-agent/second");
  const ticket told;
  const ticket lent = told.bound_to(first.clients->meeting_key());
  EXPECT_EQ(told.bound_to(first.agents->meeting_key()).text(), lent.text());
  EXPECT_NE(told.bound_to(second.agents->meeting_key()).text(), lent.text());
  EXPECT_NE(ticket().bound_to(first.agents->meeting_key()).text(), lent.text());
  client alice = client_of("alice");
  lent.lend(alice);
  for (const ticket& other : {told, told.bound_to(second.agents->meeting_key()),
                              lent.bound_to(second.agents->meeting_key())}) {
    EXPECT_EQ(refusal_of(other), errc::permission_denied);
  }
  const client acts = acting(told.bound_to(first.agents->meeting_key()));
}

TEST_F(TicketOfMeeting, IsTakenForConversationsWithAgentsOnly) {
  conversation met;
  meet(met, "other/pipe");
  EXPECT_EQ(met.agents->meeting_key().size(), ticket::size);
  EXPECT_EQ(refusal_of(ticket_of(*met.agents)), errc::permission_denied);
  EXPECT_TRUE(pipe_streambuf().meeting_key().empty());
}

}  // namespace
}  // namespace ucx::test
