// A server that has rules: what its clients can do, see and keep.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <ios>
#include <mutex>
#include <span>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/basics/soon.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/store_directories.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/simulated/simulated_server.hpp"
#include "ucx/access_rules.hpp"
#include "ucx/audit.hpp"
#include "ucx/client.hpp"
#include "ucx/content_digest.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/message.hpp"
#include "ucx/pipe_broker.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/publication.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/server.hpp"
#include "ucx/token_file.hpp"
#include "ucx/url.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using right = access_right;

/// Returns the outcome of `act`, which gets a code to set.
std::error_code outcome_by(const std::function<void(std::error_code&)>& act) {
  std::error_code ec;
  act(ec);
  return ec;
}

/// A simulated server of a writable store, a memory and two clients' worth of questions. Over UCX
/// its clients are anybody.
class ServerRules : public Store {
 protected:
  explicit ServerRules(std::optional<access_rules> rules = access_rules())
      : served_({.context = {.share_memory = false},
                 .server = {.rules = std::move(rules)},
                 .pause = std::chrono::microseconds(50)}) {
    store_ = served_.server().publish_store(directory_ / "", {.writable = true});
    memory_ = served_.server().publish("memory", std::span(bytes_), access::read_write);
    asking_.emplace(served_.connect());
  }
  void allow(right rights, std::string_view names) {
    rules_ = rules_.allow("anybody", rights, names);
    served_.server().set_rules(rules_);
  }
  std::error_code open(std::string_view name, access wanted = access::read) {
    return outcome_by(
        [&](std::error_code& ec) { remote_region opened = asking_->open(name, wanted, {}, ec); });
  }
  std::error_code create(std::string_view name, create_options how) {
    return outcome_by([&](std::error_code& ec) {
      remote_region made = asking_->create(name, how, {}, ec);
      if (ec) return;
      made.write_at(0, std::as_bytes(std::span("x", 1)), {}, ec);
      if (!ec) asking_->commit(made, {.close = true}, {}, ec);
    });
  }
  std::error_code remove(std::string_view name) {
    return outcome_by([&](std::error_code& ec) { asking_->remove(name, {}, ec); });
  }
  std::error_code rename(std::string_view from, std::string_view to) {
    return outcome_by([&](std::error_code& ec) { asking_->rename(from, to, {}, ec); });
  }
  std::error_code make_directory(std::string_view name) {
    return outcome_by([&](std::error_code& ec) { asking_->make_directory(name, {}, ec); });
  }
  std::error_code stat(std::string_view name) {
    return outcome_by([&](std::error_code& ec) { static_cast<void>(asking_->stat(name, {}, ec)); });
  }

  std::array<std::byte, 64> bytes_ = {};
  simulated_server served_;
  publication store_;
  publication memory_;
  std::optional<client> asking_;
  access_rules rules_;
};

TEST_F(ServerRules, HideEverythingFromStrangers) {
  EXPECT_THAT(asking_->list(), IsEmpty());
  for (const char* name : {"memory", "one", "a/two", "a", "nothing"}) {
    EXPECT_EQ(stat(name), errc::no_such_name) << name;
    EXPECT_EQ(open(name), errc::no_such_name) << name;
    EXPECT_EQ(open(name, access::write), errc::no_such_name) << name;
    EXPECT_EQ(create(name, {}), errc::no_such_name) << name;
    EXPECT_EQ(create(name, {.mode = creation::exclusive}), errc::no_such_name) << name;
    EXPECT_EQ(create(name, {.mode = creation::append}), errc::no_such_name) << name;
    EXPECT_EQ(create(name, {.mode = creation::overwrite}), errc::no_such_name) << name;
    EXPECT_EQ(remove(name), errc::no_such_name) << name;
    EXPECT_EQ(rename(name, "other"), errc::no_such_name) << name;
    EXPECT_EQ(make_directory(name), errc::no_such_name) << name;
    EXPECT_EQ(outcome_by([&](std::error_code& ec) { asking_->resize(name, 1, {}, ec); }),
              errc::no_such_name)
        << name;
    EXPECT_EQ(outcome_by([&](std::error_code& ec) {
                static_cast<void>(asking_->list_directory(name, {}, ec));
              }),
              errc::no_such_name)
        << name;
  }
  EXPECT_EQ(asking_->identity(), "anybody");
}

TEST(RulesOverUcx, AreSaidToBindNoHostilePeer) {
  std::string told;
  simulated_server_options options;
  options.context.share_memory = false;
  options.context.log = {.level = log_level::warning,
                         .sink = [&](log_level, std::string_view line) { told += line; }};
  simulated_server without(options);
  EXPECT_THAT(told, Not(HasSubstr("rules bind")));
  without.server().set_rules(access_rules());
  EXPECT_THAT(told, HasSubstr("rules bind no hostile peer over UCX"));
  told.clear();
  options.server.rules = access_rules();
  const simulated_server with(options);
  EXPECT_THAT(told, HasSubstr("rules bind no hostile peer over UCX"));
}

TEST_F(ServerRules, ListWhatIsAllowedAndNothingElse) {
  allow(right::list, "a/**");
  EXPECT_THAT(names_of(asking_->list()), ElementsAre("a/b/three", "a/two"));
  EXPECT_THAT(names_of(asking_->list_directory("").entries), ElementsAre("a"));
  EXPECT_THAT(names_of(asking_->list_directory("a").entries), ElementsAre("a/b", "a/two"));
  EXPECT_FALSE(stat("a/two"));
  EXPECT_FALSE(stat("a"));
  EXPECT_EQ(stat("one"), errc::no_such_name);
  EXPECT_EQ(open("a/two"), errc::permission_denied);
  EXPECT_EQ(open("a.txt"), errc::no_such_name);
  allow(right::list, "memory");
  EXPECT_THAT(names_of(asking_->list()), ElementsAre("a/b/three", "a/two", "memory"));
}

TEST_F(ServerRules, ListOnPagesOfWhichMostIsHidden) {
  std::filesystem::create_directories(directory_ / "many");
  for (int i = 0; i < 3000; ++i) directory_.make("many/" + std::to_string(10'000 + i), "");
  allow(right::list, "many/1?999");
  allow(right::list, "one");
  EXPECT_THAT(names_of(asking_->list()),
              ElementsAre("many/10999", "many/11999", "many/12999", "one"));
  EXPECT_THAT(names_of(asking_->list_directory("many").entries),
              ElementsAre("many/10999", "many/11999", "many/12999"));
}

TEST_F(ServerRules, OpenWithTheWantedRightsOnly) {
  allow(right::read, "one");
  allow(right::read, "memory");
  EXPECT_FALSE(open("one"));
  EXPECT_FALSE(open("memory"));
  EXPECT_EQ(open("one", access::write), errc::permission_denied);
  EXPECT_EQ(open("memory", access::read_write), errc::permission_denied);
  EXPECT_EQ(asking_->stat("memory").granted, access::read);
  EXPECT_THAT(asking_->list(), IsEmpty());
  allow(right::write, "memory");
  EXPECT_FALSE(open("memory", access::read_write));
}

TEST_F(ServerRules, CreateNewFilesWithoutReplacingOthers) {
  allow(right::create, "in/**");
  allow(right::create, "one");
  EXPECT_FALSE(create("in/new", {.mode = creation::exclusive}));
  EXPECT_EQ(create("in/new", {.mode = creation::exclusive}), errc::already_exists);
  EXPECT_EQ(create("in/new", {}), errc::no_such_name);
  EXPECT_EQ(create("one", {.mode = creation::append}), errc::no_such_name);
  allow(right::write, "in/**");
  EXPECT_FALSE(create("in/new", {}));
  EXPECT_FALSE(create("in/new", {.mode = creation::append}));
  EXPECT_EQ(open("in/new"), errc::permission_denied);
}

TEST_F(ServerRules, MakeDirectoriesWithTheRightToCreate) {
  allow(right::list, "**");
  EXPECT_EQ(make_directory("in/deep"), errc::permission_denied);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "in"));
  allow(right::create, "in/**");
  EXPECT_FALSE(make_directory("in/deep"));
  EXPECT_TRUE(std::filesystem::is_directory(directory_ / "in/deep"));
  EXPECT_EQ(make_directory("in/deep"), errc::already_exists);
}

TEST_F(ServerRules, RemoveAndRenameByTheRightsOfBothNames) {
  allow(right::list, "**");
  EXPECT_EQ(remove("one"), errc::permission_denied);
  allow(right::remove, "one");
  EXPECT_EQ(rename("one", "out/one"), errc::permission_denied);
  allow(right::read, "one");
  EXPECT_EQ(rename("one", "out/one"), errc::permission_denied);
  allow(right::create | right::write, "out/**");
  EXPECT_FALSE(rename("one", "out/one"));
  EXPECT_EQ(remove("out/one"), errc::permission_denied);
  allow(right::remove, "out/**");
  EXPECT_FALSE(remove("out/one"));
}

TEST_F(ServerRules, SayNothingOfAPublishedNameBeforeTheRights) {
  allow(right::list, "one");
  EXPECT_EQ(rename("one", "memory"), errc::permission_denied);
  EXPECT_EQ(rename("one", "nothing"), errc::permission_denied) << "as of a name that is free";
  allow(right::list, "memory");
  const auto resize = [&] {
    return outcome_by([&](std::error_code& ec) { asking_->resize("memory", 1, {}, ec); });
  };
  EXPECT_EQ(remove("memory"), errc::permission_denied);
  EXPECT_EQ(make_directory("memory"), errc::permission_denied);
  EXPECT_EQ(rename("memory", "other"), errc::permission_denied);
  EXPECT_EQ(resize(), errc::permission_denied);
  allow(right::all, "**");
  EXPECT_EQ(remove("memory"), errc::not_supported);
  EXPECT_EQ(make_directory("memory"), errc::not_supported);
  EXPECT_EQ(rename("memory", "other"), errc::not_supported);
  EXPECT_EQ(rename("one", "memory"), errc::not_supported);
  EXPECT_EQ(resize(), errc::not_supported);
}

TEST_F(ServerRules, SayNotOfAHiddenFileThatItIsNoDirectory) {
  const auto list = [&](const char* name) {
    return outcome_by(
        [&](std::error_code& ec) { static_cast<void>(asking_->list_directory(name, {}, ec)); });
  };
  allow(right::list, "*/**");
  EXPECT_EQ(list("one"), errc::no_such_name);
  EXPECT_EQ(list("nothing"), errc::no_such_name);
  const std::error_code hidden = list("one");
  allow(right::list, "one");
  EXPECT_NE(list("one"), hidden);
  EXPECT_TRUE(list("one"));
}

TEST_F(ServerRules, RenameDirectoriesWhereAllBelowMayMove) {
  allow(right::read | right::remove, "a");
  allow(right::create | right::write, "**");
  EXPECT_EQ(rename("a", "z"), errc::permission_denied);
  allow(right::read | right::remove, "a/**");
  EXPECT_FALSE(rename("a", "z"));
}

TEST_F(ServerRules, ResizeWithTheRightToWrite) {
  allow(right::read, "one");
  EXPECT_EQ(outcome_by([&](std::error_code& ec) { asking_->resize("one", 2, {}, ec); }),
            errc::permission_denied);
  allow(right::write, "one");
  EXPECT_FALSE(outcome_by([&](std::error_code& ec) { asking_->resize("one", 2, {}, ec); }));
}

TEST_F(ServerRules, RevokeAtOnceWhatIsNoLongerAllowed) {
  allow(right::read | right::write, "**");
  remote_region memory = asking_->open("memory", access::read_write);
  remote_region file = asking_->open("one");
  std::array<std::byte, 5> into = {};
  memory.read_at(0, std::span(into).first(4));
  file.read_at(0, into);
  served_.server().set_rules(access_rules().allow("anybody", right::read, "**"));
  EXPECT_EQ(
      outcome_by([&](std::error_code& ec) { memory.read_at(0, std::span(into).first(4), {}, ec); }),
      errc::revoked);
  file.read_at(0, into);
  served_.server().set_rules(access_rules());
  EXPECT_EQ(outcome_by([&](std::error_code& ec) { file.read_at(0, into, {}, ec); }), errc::revoked);
  EXPECT_EQ(open("one"), errc::no_such_name);
  served_.server().set_rules(std::nullopt);
  EXPECT_FALSE(open("memory", access::read_write));
}

TEST_F(ServerRules, ThrowAwayWhatIsBeingWrittenAndNoLongerAllowed) {
  allow(right::create | right::write, "**");
  remote_region made = asking_->create("new");
  made.write_at(0, std::as_bytes(std::span("text", 4)));
  made.flush();
  served_.server().set_rules(access_rules());
  EXPECT_TRUE(outcome_by([&](std::error_code& ec) { asking_->commit(made, {}, {}, ec); }));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "new"));
  // The name is free for others.
  rules_ = access_rules();
  allow(right::create | right::write, "**");
  EXPECT_FALSE(create("new", {}));
}

TEST_F(ServerRules, LeaveOpenWhatIsStillAllowed) {
  allow(right::read, "one");
  remote_region file = asking_->open("one");
  allow(right::read, "a/**");
  std::array<std::byte, 5> into = {};
  file.read_at(0, into);
  EXPECT_EQ(into[0], std::byte{'f'});
}

/// By a Unix socket the client is of the server's own user; it is another one where that is said.
class OwnServerRules : public testing::Test {
 protected:
  server served(server_options options) {
    options.bind = "unix:" + (folder_ / "x.sock").string();
    options.context.share_memory = false;
    return server(options);
  }
  static client client_of(const server& there) {
    return client(url(there.url()), {.context = {.share_memory = false}});
  }
  std::string text_of(const std::filesystem::path& file) const {
    std::ostringstream all;
    all << std::ifstream(file).rdbuf();
    return all.str();
  }

  std::array<std::byte, 64> bytes_ = {};
  const temporary_directory folder_;
};

TEST_F(OwnServerRules, LetTheOwnerDoAllUnlessALineSaysOtherwise) {
  for (const std::size_t workers : {1U, 2U}) {
    server there = served({.workers = workers, .rules = access_rules()});
    const publication memory = there.publish("memory", std::span(bytes_), access::read_write);
    client owner = client_of(there);
    EXPECT_EQ(owner.identity(), "owner, user " + std::to_string(::geteuid()));
    remote_region opened = owner.open("memory", access::read_write);
    std::array<std::byte, 4> into = {};
    opened.read_at(0, into);
    there.set_rules(access_rules().deny("owner", right::write));
    // With several workers another one has to hear of it.
    EXPECT_TRUE(soon([&] {
      return outcome_by([&](std::error_code& ec) { opened.read_at(0, into, {}, ec); }) ==
             errc::revoked;
    }));
    EXPECT_EQ(outcome_by([&](std::error_code& ec) {
                const remote_region again = owner.open("memory", access::write, {}, ec);
              }),
              errc::permission_denied);
    EXPECT_EQ(owner.list().size(), 1U);
  }
}

TEST_F(OwnServerRules, EndReadsThatAreUnderWay) {
  std::vector<std::byte> large(std::size_t{256} << 20U);
  server there = served({});
  const publication memory = there.publish("memory", std::span(large), access::read);
  client owner = client_of(there);
  remote_region opened = owner.open("memory");
  std::vector<std::byte> into(large.size());
  request reading = opened.start_read_at(0, into);
  there.set_rules(access_rules().deny("anybody", right::all));
  std::error_code ec;
  reading.wait(ec);
  EXPECT_EQ(ec, errc::revoked);
}

TEST_F(OwnServerRules, WriteAnAudit) {
  const std::filesystem::path audit = folder_ / "audit";
  {
    server there = served({.rules = access_rules().deny("owner", right::write | right::list, "me*"),
                           .audit_file = audit});
    const publication memory = there.publish("memory", std::span(bytes_), access::read_write);
    const publication other = there.publish("a \"name\"\x01", std::span(bytes_), access::read);
    client owner = client_of(there);
    const remote_region one = owner.open("memory");
    const remote_region two = owner.open("a \"name\"\x01");
    EXPECT_EQ(outcome_by([&](std::error_code& ec) {
                const remote_region none = owner.open("memory", access::write, {}, ec);
              }),
              errc::permission_denied);
    there.set_rules(access_rules().deny("owner", right::read, "memory"));
    owner.close();
    EXPECT_TRUE(soon([&] { return text_of(audit).find("disconnect") != std::string::npos; }));
  }
  const std::string user = std::to_string(::geteuid());
  const std::string text = text_of(audit);
  EXPECT_THAT(text, HasSubstr("\"event\":\"connect\",\"who\":\"owner, user " + user + "\""));
  EXPECT_THAT(text, HasSubstr("\"name\":\"memory\",\"access\":\"read\",\"outcome\":\"ok\""));
  EXPECT_THAT(text, HasSubstr(R"("name":"a \"name\"\u0001","access":"read","outcome":"ok")"));
  EXPECT_THAT(text, HasSubstr("\"access\":\"write\",\"outcome\":\"permission_denied\""));
  EXPECT_THAT(text, HasSubstr("\"event\":\"revoke\""));
  EXPECT_THAT(text, HasSubstr("\"event\":\"rules\""));
  EXPECT_THAT(text, HasSubstr("\"event\":\"disconnect\""));
}

/// The ends are of the owner, whom lines restrict too.
class PipeRules : public OwnServerRules {
 protected:
  explicit PipeRules(std::size_t workers = 1)
      : there_(
            served({.workers = workers, .rules = access_rules(), .audit_file = folder_ / "audit"})),
        broker_(there_) {}

  std::error_code meet(const std::string& name, std::ios_base::openmode mode,
                       std::chrono::milliseconds timeout = std::chrono::seconds(30)) {
    pipe_options options;
    options.connect_timeout = timeout;
    options.context.share_memory = false;
    return outcome_by([&](std::error_code& ec) {
      pipe_streambuf end(url(there_.url(name)), mode, options, ec);
      // A reader that left at once could be missed by its writer.
      if (!ec && mode == std::ios_base::in) end.sgetc();
    });
  }
  /// Nobody else comes: an end that is allowed waits in vain.
  std::error_code wait_in_vain(const std::string& name, std::ios_base::openmode mode) {
    return meet(name, mode, std::chrono::milliseconds(500));
  }

  void expect_both_meet(const std::string& name) {
    std::error_code read;
    std::thread reading([&] { read = meet(name, std::ios_base::in); });
    EXPECT_FALSE(meet(name, std::ios_base::out));
    reading.join();
    EXPECT_FALSE(read);
  }
  /// Expects a line of the audit, soon, that has these parts in their order.
  void expect_line(const std::vector<std::string>& parts) const {
    const auto has_all = [&](const std::string& line) {
      std::size_t at = 0;
      return std::ranges::all_of(parts, [&](const std::string& part) {
        at = line.find(part, at);
        return at != line.npos;
      });
    };
    EXPECT_TRUE(soon([&] {
      std::ifstream all(folder_ / "audit");
      for (std::string line; std::getline(all, line);) {
        if (has_all(line)) return true;
      }
      return false;
    })) << testing::PrintToString(parts)
        << " in\n"
        << text_of(folder_ / "audit");
  }

  server there_;
  pipe_broker broker_;
};

TEST_F(PipeRules, CountByTheNameOfThePipe) {
  there_.set_rules(access_rules().deny("anybody", right::pipes, "no/**"));
  EXPECT_EQ(meet("no/pipe", std::ios_base::in), errc::permission_denied);
  EXPECT_EQ(meet("no/pipe", std::ios_base::out), errc::permission_denied);
  EXPECT_EQ(wait_in_vain("a/pipe", std::ios_base::in), errc::timed_out);
}

TEST_F(PipeRules, HaveTheMeetingsInTheAudit) {
  const std::string owner = "\"owner, user " + std::to_string(::geteuid()) + '"';
  there_.set_rules(access_rules().deny("anybody", right::pipes, "no/**"));
  EXPECT_EQ(meet("no/pipe", std::ios_base::out), errc::permission_denied);
  expect_line({"\"event\":\"meet\",\"who\":" + owner, "\"name\":\"no/pipe\"",
               "\"access\":\"write\",\"outcome\":\"permission_denied\""});
  expect_both_meet("a/pipe");
  expect_line({"\"event\":\"meet\",\"who\":" + owner, "\"connection\":\"", "\"with\":" + owner,
               "\"with_connection\":\"", "\"name\":\"a/pipe\"",
               "\"access\":\"read\",\"outcome\":\"ok\""});
  expect_line({"\"event\":\"disconnect\",\"who\":" + owner});
}

/// Connections of different workers have one number.
class PipeRulesOfWorkers : public PipeRules {
 protected:
  PipeRulesOfWorkers() : PipeRules(2) {}
};

TEST_F(PipeRulesOfWorkers, HaveTheMeetingsInTheAudit) {
  for (const std::string name : {"first", "second", "third"}) {
    expect_both_meet(name);
    expect_line({"\"event\":\"meet\"", "\"with\":\"owner", "\"name\":\"" + name + '"',
                 "\"outcome\":\"ok\""});
  }
}

/// A service of a program has lines of its own.
TEST_F(OwnServerRules, WriteLinesOfProgramsIntoTheAudit) {
  for (const bool has_audit : {false, true}) {
    const std::filesystem::path audit = folder_ / "audit";
    std::atomic<bool> has_come = false;
    {
      server there = served({.audit_file = has_audit ? audit : std::filesystem::path()});
      there.worker().on_message(7, [&](const message& asked) {
        audit_event event;
        event.event = "ask";
        event.name = "a name";
        append_to_audit(asked.peer(), event);
        has_come = true;
      });
      client asks = client_of(there);
      endpoint by = asks.connection();
      by.send(active_message{7}, std::as_bytes(std::span("text", 4)));
      EXPECT_TRUE(soon([&] { return has_come.load(); }));
      there.worker().on_message(7, {});
      append_to_audit(by, {});  // that side has no server
    }
    if (!has_audit) {
      EXPECT_FALSE(std::filesystem::exists(audit));
      continue;
    }
    const std::string text = text_of(audit);
    EXPECT_THAT(text, HasSubstr("\"event\":\"ask\",\"who\":\"owner, user "));
    EXPECT_THAT(text, HasSubstr("\"name\":\"a name\",\"outcome\":\"ok\""));
  }
}

TEST_F(PipeRules, CountForAgentsByTheirOneName) {
  const auto both = std::ios_base::in | std::ios_base::out;
  there_.set_rules(access_rules().deny("anybody", right::agent, ".ucxio-agent"));
  EXPECT_EQ(meet(".ucxio-agent", std::ios_base::out), errc::permission_denied);
  EXPECT_EQ(meet(".ucxio-agent/caller", both), errc::permission_denied);
  there_.set_rules(access_rules().deny("anybody", right::pipes, ".ucxio-agent"));
  EXPECT_EQ(meet(".ucxio-agent", std::ios_base::in), errc::permission_denied)
      << "it would hear the calls";
  EXPECT_EQ(wait_in_vain(".ucxio-agent", std::ios_base::out), errc::timed_out);
  EXPECT_EQ(wait_in_vain(".ucxio-agent/caller", both), errc::timed_out);
}

TEST_F(PipeRules, CountAgainWhenTheOtherEndComes) {
  std::error_code waited;
  std::atomic<bool> is_told{false};
  std::thread waiting([&] {
    waited = meet(".ucxio-agent", std::ios_base::in);
    is_told = true;
  });
  EXPECT_TRUE(soon([&] { return broker_.waiting() == 1; }));
  there_.set_rules(access_rules().deny("anybody", right::pipes, ".ucxio-agent"));
  for (int i = 0; i < 20 && !is_told; ++i) {  // one that connects slowly may not have asked
    EXPECT_EQ(wait_in_vain(".ucxio-agent", std::ios_base::out), errc::timed_out);
  }
  waiting.join();
  EXPECT_EQ(waited, errc::permission_denied);
}

/// By TLS the client has a token.
class TokenRules : public testing::Test {
 protected:
  TokenRules() {
    token_ = token_file(folder_ / "servers").create("alice");
    token_file(folder_ / "clients").add("127.0.0.1", token_);
  }
  context_options options_of(const std::string& file) {
    context_options made{.share_memory = false};
    made.token_file = folder_ / file;
    return made;
  }
  server served(std::optional<access_rules> rules, std::size_t workers = 1) {
    context_options chosen = options_of("servers");
    chosen.transports = {"tls"};
    return server(
        {.bind = "127.0.0.1:0", .context = chosen, .workers = workers, .rules = std::move(rules)});
  }

  std::array<std::byte, 64> bytes_ = {};
  std::string token_;
  const temporary_directory folder_;
};

bool lacks_tls(const std::function<void()>& work) {
  try {
    work();
  } catch (const error& thrown) {
    if (thrown.code() == errc::not_supported) return true;
    throw;
  }
  return false;
}

TEST_F(TokenRules, KnowTheTokenAndThatItIsOfThisProcess) {
  std::optional<server> there;
  if (lacks_tls([&] { there.emplace(served(access_rules())); }))
    GTEST_SKIP() << "built without TLS";
  const publication memory = there->publish("memory", std::span(bytes_), access::read);
  client own(url(there->url()), {.context = options_of("clients")});
  // This process has connected to itself.
  EXPECT_EQ(own.identity(), "owner, token \"alice\"");
  EXPECT_EQ(own.list().size(), 1U);
  there->set_rules(access_rules().deny("token alice", right::all));
  EXPECT_EQ(own.list().size(), 0U);
}

TEST_F(TokenRules, EndTheConnectionsOfARemovedToken) {
  for (const std::size_t workers : {1U, 2U}) {
    token_file servers(folder_ / "servers");
    const std::string name = "bob" + std::to_string(workers);
    const std::string file = "others" + std::to_string(workers);
    token_file(folder_ / file).add("127.0.0.1", servers.create(name));
    std::optional<server> there;
    if (lacks_tls([&] { there.emplace(served(std::nullopt, workers)); }))
      GTEST_SKIP() << "built without TLS";
    const publication memory = there->publish("memory", std::span(bytes_), access::read);
    client alice(url(there->url()), {.context = options_of("clients")});
    // Each worker has a connection.
    client one(url(there->url()), {.context = options_of(file)});
    client two(url(there->url()), {.context = options_of(file)});
    servers.remove(name);
    for (client* each : {&one, &two}) {
      EXPECT_TRUE(soon([&] {
        std::error_code ec;
        static_cast<void>(each->list({}, ec));
        return static_cast<bool>(ec);
      }));
    }
    EXPECT_EQ(alice.list().size(), 1U);
  }
}

}  // namespace
}  // namespace ucx::test
