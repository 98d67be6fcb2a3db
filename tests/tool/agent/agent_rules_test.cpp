// The agent of a server with rules: it may what its client may. Clients are told apart by tokens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "support/basics/changed_variable.hpp"
#include "support/basics/soon.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/process/child_process.hpp"
#include "support/process/command.hpp"
#include "support/tool/agent_talk.hpp"
#include "support/tool/copy_place.hpp"
#include "support/tool/tool.hpp"
#include "ucx/client.hpp"
#include "ucx/client_options.hpp"
#include "ucx/ticket.hpp"
#include "ucx/url.hpp"

namespace ucx::test {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

/// Each client has a directory of the store, and both have one.
constexpr const char* rules_for_both =
    "allow token alice agent .ucxio-agent\n"
    "allow token bob agent .ucxio-agent\n"
    "allow token alice list,read,write,create,remove alice/**\n"
    "allow token bob list,read,write,create,remove bob/**\n"
    "allow anybody list,read,write,create,remove both/**\n";

nlohmann::json copy_question(const std::string& from, const std::string& to) {
  return {{"ask", "copy"},   {"from", {from}},  {"to", to},        {"recursive", false},
          {"verify", false}, {"resume", false}, {"sparse", false}, {"preserve", false},
          {"codec", "none"}, {"parallel", 1},   {"rate", 0},       {"timeout_ms", 20000}};
}

nlohmann::json answer_of(agent_talk& talk, const nlohmann::json& question) {
  talk.say(agent_bytes(question.dump()));
  return talk.hear().value_or(nlohmann::json("the end"));
}

/// Has an agent that needs tickets copy, and returns how that ended.
nlohmann::json outcome_of(agent_talk& talk, const nlohmann::json& copy) {
  EXPECT_EQ(answer_of(talk, {{"ask", "hello"}, {"version", 1}}),
            nlohmann::json({{"needs_tickets", true}}));
  EXPECT_EQ(answer_of(talk, copy), nlohmann::json::object());
  nlohmann::json news;
  EXPECT_TRUE(soon([&] {
    news = answer_of(talk, {{"ask", "look"}});
    return !news.is_object() || !news.contains("over") || news["over"] == true;
  }));
  return news.is_object() ? news["outcome"] : news;
}

/// This user has tokens of its own, and ones for alice and bob, each of which has a file.
class AgentRules : public ::testing::Test {
 protected:
  AgentRules() {
    std::filesystem::create_directory(folder_ / "run");
    std::filesystem::permissions(folder_ / "run", std::filesystem::perms::owner_all);
    EXPECT_EQ(run_tool({"token", "new", "own"}).code, 0);
    for (const std::string who : {"alice", "bob"}) {
      const std::string token = run_tool({"token", "new", who}).out;
      tokens_[who] = token.substr(0, token.find('\n'));
      const std::string add = "printf %s '" + token + "' | " + tool_program() +
                              " token add 127.0.0.1 --token-file " + path(who);
      EXPECT_EQ(command("/bin/sh", {"-c", add}).finish().code, 0);
      std::filesystem::create_directories(folder_ / ("store/" + who));
    }
    std::filesystem::create_directories(folder_ / "store/both");
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  /// At once, and writable for no other user.
  void write_rules(const std::string& text) const {
    std::ofstream(path("new")) << text;
    std::filesystem::permissions(path("new"), std::filesystem::perms::owner_read);
    std::filesystem::rename(path("new"), path("rules"));
  }
  /// Returns the words of a server of the store, with rules and an agent.
  std::vector<std::string> line(const std::string& rules,
                                const std::vector<std::string>& more = {}) const {
    write_rules(rules);
    std::vector<std::string> words{"--tls",       "--store", path("store"), "--writable", "--rules",
                                   path("rules"), "--agent", "--audit",     path("audit")};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::vector<std::string> copying_as(const std::string& who,
                                      std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"cp", "--token-file", path(who)});
    return arguments;
  }
  command_result copy_as(const std::string& who, const std::vector<std::string>& arguments) const {
    return run_tool(copying_as(who, arguments));
  }
  void expect_copied_by(const std::string& who, const std::vector<std::string>& arguments) const {
    const command_result result = copy_as(who, arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.err, "");
  }
  static std::string first_line(command& of) {
    std::string all;
    while (all.find('\n') == all.npos) {
      const std::string more = of.read(1);
      if (more.empty()) return "none";
      all += more;
    }
    return all.substr(0, all.find('\n'));
  }
  void expect_in_audit(const std::string& words) const {
    EXPECT_TRUE(soon([&] { return content_of(path("audit")).find(words) != std::string::npos; }))
        << words << " in\n"
        << content_of(path("audit"));
  }
  /// Returns whether the audit has such a line. `partial`: of no further members.
  static bool has_line(const std::string& audit, const nlohmann::json& partial) {
    std::istringstream lines(audit);
    for (std::string text; std::getline(lines, text);) {
      const auto line = nlohmann::json::parse(text, nullptr, false);
      if (!line.is_object()) continue;
      bool fits = true;
      for (const auto& member : partial.items()) {
        fits = fits && line.contains(member.key()) && line[member.key()] == member.value();
      }
      if (fits) return true;
    }
    return false;
  }
  void expect_line(const std::string& audit, const nlohmann::json& partial) const {
    EXPECT_TRUE(soon([&] { return has_line(content_of(path(audit)), partial); }))
        << partial << " in\n"
        << content_of(path(audit));
  }
  /// A file of holes, which no throttled copy comes to the end of.
  void make_endless(const std::string& name) const {
    folder_.make(name, "");
    std::filesystem::resize_file(path(name), std::uintmax_t{8} << 30U);
  }
  static void expect_ended(command& running, int code, const std::string& words) {
    const command_result result = running.finish(std::chrono::minutes(2));
    EXPECT_TRUE(result.in_time);
    EXPECT_EQ(result.code, code) << result.err;
    EXPECT_THAT(result.err, HasSubstr(words));
  }
  /// Expects that the copy to alice/x does not go on, nor has come to its end.
  void expect_stopped(const tool_server& server) const {
    const std::string partial = path("store/alice/.x.ucxio-part");
    const auto size = std::filesystem::file_size(partial);
    folder_.make("other", pattern_text(mib));
    expect_copied_by("bob", {path("other"), server.url("bob/other")});
    EXPECT_EQ(std::filesystem::file_size(partial), size);
    EXPECT_FALSE(std::filesystem::exists(path("store/alice/x")));
  }
  /// Begins to copy so slowly that things happen meanwhile; returns when some is there.
  std::unique_ptr<command> begin_as(const std::string& who, std::vector<std::string> arguments,
                                    const std::string& partial) const {
    arguments.insert(arguments.begin(), {"--resume", "--bwlimit", "2M"});
    auto running = std::make_unique<command>(tool_program(), copying_as(who, std::move(arguments)));
    EXPECT_TRUE(soon([&] {
      std::error_code ec;
      const auto there = std::filesystem::file_size(partial, ec);
      return !ec && there >= mib;
    }));
    return running;
  }

  const temporary_directory folder_;
  const changed_variable config_{"XDG_CONFIG_HOME", (folder_ / "config").c_str()};
  const changed_variable run_{"XDG_RUNTIME_DIR", (folder_ / "run").c_str()};
  const changed_variable token_{"UCXIO_TOKEN", nullptr};
  std::map<std::string, std::string> tokens_;
};

/// Copies that the agent of the server compresses.
class CompressedByRules : public AgentRules {
 protected:
  command_result compress_as(const std::string& who, const std::string& from,
                             const std::string& to) const {
    return copy_as(who, {"--compress", "zstd", from, to});
  }
};

TEST_F(CompressedByRules, ReachTheNamesOfTheirClient) {
  const tool_server server(line(rules_for_both));
  folder_.make("here", std::string(3 * mib, 'x'));
  folder_.make("store/alice/secret", "of alice");
  expect_copied_by("alice", {"--compress", "zstd", path("here"), server.url("alice/x")});
  EXPECT_EQ(content_of(path("store/alice/x")), std::string(3 * mib, 'x'));
  expect_copied_by("alice", {"--compress", "lz4", server.url("alice/x"), path("back")});
  EXPECT_EQ(content_of(path("back")), std::string(3 * mib, 'x'));
  expect_copied_by("bob", {"--compress", "zstd", path("here"), server.url("both/x")});
  expect_in_audit("for\":\"token \\\"alice\\\"\"");
  const command_result hidden = compress_as("bob", server.url("alice/secret"), path("got"));
  const command_result unknown = compress_as("bob", server.url("alice/nothing"), path("got"));
  EXPECT_EQ(hidden.code, 3) << hidden.err;
  EXPECT_EQ(unknown.code, hidden.code) << unknown.err;
  EXPECT_FALSE(std::filesystem::exists(path("got")));
  EXPECT_EQ(compress_as("bob", path("here"), server.url("alice/y")).code, 3);
  EXPECT_FALSE(std::filesystem::exists(path("store/alice/y")));
}

/// Which thread serves a client is not chosen by the client: several meet several threads.
TEST_F(CompressedByRules, ReachTheNamesOfTheirClientOnEachWorker) {
  const tool_server server(line(rules_for_both, {"--workers", "3", "--fetch-from", "any"}));
  folder_.make("here", pattern_text(mib));
  folder_.make("store/alice/secret", "of alice");
  for (int i = 0; i < 4; ++i) {
    const std::string name = "alice/x" + std::to_string(i);
    expect_copied_by("alice", {"--compress", "zstd", path("here"), server.url(name)});
    expect_copied_by("alice", {"--direct", server.url(name), server.url(name + "y")});
    EXPECT_EQ(content_of(path("store/" + name + "y")), pattern_text(mib));
    EXPECT_EQ(compress_as("bob", server.url("alice/secret"), path("got")).code, 3);
  }
  EXPECT_FALSE(std::filesystem::exists(path("got")));
}

TEST_F(CompressedByRules, NeedTheRightToCallTheAgent) {
  const tool_server server(line("allow token alice list,read,write,create **\n"));
  folder_.make("here", "text");
  EXPECT_EQ(compress_as("alice", path("here"), server.url("both/x")).code, 5);
  EXPECT_FALSE(std::filesystem::exists(path("store/both/x")));
}

/// Copies that take long, while their rights end.
class EndedByRules : public AgentRules {
 protected:
  EndedByRules() {
    make_endless("here");
    std::filesystem::create_directories(folder_ / "source/alice");
    make_endless("source/alice/large");
  }
  std::unique_ptr<command> compress(const tool_server& server) const {
    return begin_as("alice", {"--compress", "lz4", path("here"), server.url("alice/x")}, partial_);
  }
  std::unique_ptr<command> fetch(const tool_server& source, const tool_server& target) const {
    return begin_as("alice", {"--direct", source.url("alice/large"), target.url("alice/x")},
                    partial_);
  }
  std::vector<std::string> source_line(const std::string& rights) const {
    std::ofstream(path("source_rules")) << "allow token own list,read **\n"
                                           "allow token alice " +
                                               rights + " alice/**\n";
    return {"--tls",   "--store",           path("source"), "--rules", path("source_rules"),
            "--audit", path("source_audit")};
  }

  const std::string partial_ = path("store/alice/.x.ucxio-part");
  const nlohmann::json end_for_alice_{{"event", "disconnect"}, {"for", "token \"alice\""}};
};

TEST_F(EndedByRules, CompressedOnesNeedTheRightToCallTheAgent) {
  tool_server server(line(rules_for_both));
  const auto running = compress(server);
  write_rules(std::string("deny token alice agent **\n") + rules_for_both);
  server.process().send_signal(SIGHUP);
  expect_ended(*running, lost, "connection was lost");
  nlohmann::json ended = end_for_alice_;
  ended["outcome"] = "revoked";
  expect_line("audit", ended);
  expect_stopped(server);
}

TEST_F(EndedByRules, CompressedOnesNeedTheRightToWrite) {
  tool_server server(line(rules_for_both));
  const auto running = compress(server);
  write_rules(std::string("deny token alice write **\n") + rules_for_both);
  server.process().send_signal(SIGHUP);
  expect_ended(*running, lost, "withdrew the region");
  expect_line("audit",
              {{"event", "revoke"}, {"for", "token \"alice\""}, {"name", "alice/.x.ucxio-part"}});
  expect_stopped(server);
}

TEST_F(EndedByRules, CompressedOnesNeedTheTokenOfTheirClient) {
  const tool_server server(line(rules_for_both));
  const auto running = compress(server);
  EXPECT_EQ(run_tool({"token", "remove", "alice"}).code, 0);
  expect_ended(*running, lost, "lost");
  nlohmann::json ended = end_for_alice_;
  ended["outcome"] = "ok";
  expect_line("audit", ended);
  expect_stopped(server);
}

TEST_F(EndedByRules, FetchedOnesNeedTheRightToCallTheAgent) {
  const tool_server source(source_line("list,read"));
  tool_server target(line(rules_for_both, {"--fetch-from", "127.0.0.1"}));
  const auto running = fetch(source, target);
  write_rules(std::string("deny token alice agent **\n") + rules_for_both);
  target.process().send_signal(SIGHUP);
  expect_ended(*running, lost, "connection was lost");
  expect_stopped(target);
}

TEST_F(EndedByRules, FetchedOnesNeedTheRightToRead) {
  tool_server source(source_line("list,read"));
  const tool_server target(line(rules_for_both, {"--fetch-from", "127.0.0.1"}));
  const auto running = fetch(source, target);
  source_line("list");
  source.process().send_signal(SIGHUP);
  expect_ended(*running, lost, "withdrew the region");
  expect_line("source_audit",
              {{"event", "revoke"}, {"for", "token \"alice\""}, {"name", "alice/large"}});
  expect_stopped(target);
}

TEST_F(EndedByRules, FetchedOnesNeedTheirClient) {
  const tool_server source(source_line("list,read"));
  const tool_server target(line(rules_for_both, {"--fetch-from", "127.0.0.1"}));
  const auto running = fetch(source, target);
  running->send_signal(SIGKILL);
  EXPECT_EQ(running->finish().signal, SIGKILL);
  for (const std::string audit : {"audit", "source_audit"}) expect_line(audit, end_for_alice_);
  expect_stopped(target);
}

/// A second server, whose files the first one fetches.
class FetchedByRules : public AgentRules {
 protected:
  FetchedByRules() {
    for (const std::string who : {"alice", "bob"}) {
      std::filesystem::create_directories(folder_ / ("source/" + who));
      folder_.make("source/" + who + "/x", "of " + who);
    }
    folder_.make("store/alice/secret", "of alice");
  }
  /// Returns the words of a server that gives each client a directory, and the agent, which has the
  /// user's token, all of them.
  std::vector<std::string> source_line() const {
    std::ofstream(path("source_rules")) << "allow token own list,read **\n"
                                           "allow token alice list,read alice/**\n"
                                           "allow token bob list,read bob/**\n";
    return {"--tls", "--store", path("source"), "--rules", path("source_rules")};
  }
  command_result fetch_as(const std::string& who, const std::string& from,
                          const std::string& to) const {
    return copy_as(who, {"--direct", from, to});
  }
};

TEST_F(FetchedByRules, AreReadAndWrittenWithTheRightsOfTheClient) {
  const tool_server source(source_line());
  const tool_server target(line(rules_for_both, {"--fetch-from", "127.0.0.1"}));
  expect_copied_by("alice", {"--direct", source.url("alice/x"), target.url("alice/new")});
  EXPECT_EQ(content_of(path("store/alice/new")), "of alice");
  expect_copied_by("bob", {"--direct", "-r", source.url("bob"), target.url("both/tree")});
  EXPECT_EQ(content_of(path("store/both/tree/x")), "of bob");
  EXPECT_EQ(fetch_as("bob", source.url("alice/x"), target.url("bob/x")).code, 3);
  EXPECT_EQ(fetch_as("bob", source.url("alice/nothing"), target.url("bob/x")).code, 3);
  EXPECT_EQ(fetch_as("bob", source.url("bob/x"), target.url("alice/new")).code, 3);
  EXPECT_EQ(content_of(path("store/alice/new")), "of alice");
  EXPECT_FALSE(std::filesystem::exists(path("store/bob/x")));
}

TEST_F(FetchedByRules, DoNotComeFromTheServerItselfByAnotherName) {
  const tool_server target(line(rules_for_both, {"--fetch-from", "any"}));
  const std::string by_name =
      "ucxs://localhost" + target.url().substr(target.url().rfind(':')) + "/alice/secret";
  for (const std::string& from : {target.url("alice/secret"), by_name}) {
    const command_result refused = fetch_as("bob", from, target.url("bob/x"));
    EXPECT_NE(refused.code, 0) << from;
    EXPECT_FALSE(std::filesystem::exists(path("store/bob/x"))) << from;
  }
  expect_copied_by("alice", {"--direct", target.url("alice/secret"), target.url("both/x")});
}

/// A client that has got what another one lent, calls the agent itself.
TEST_F(FetchedByRules, AreNotReadByTheTicketOfAnotherClient) {
  const tool_server source(source_line());
  const tool_server target(line(rules_for_both, {"--fetch-from", "127.0.0.1"}));
  client_options options;
  options.context.token_file = path("alice");
  client alice(url(source.url()), options);
  const ticket lent;
  lent.lend(alice);
  const changed_variable bob("UCXIO_TOKEN", tokens_.at("bob").c_str());
  nlohmann::json copy = copy_question(source.url("alice/x"), target.url("bob/x"));
  copy["tickets"] = {{{"server", source.url()}, {"ticket", lent.text()}}};
  agent_talk talk = agent_talk::with_agent(target.url());
  const nlohmann::json outcome = outcome_of(talk, copy);
  EXPECT_EQ(outcome["code"], 5) << outcome;
  EXPECT_FALSE(std::filesystem::exists(path("store/bob/x")));
  options.context.token_file = path("bob");
  client bobs = lent.connect(url(source.url()), options);
  EXPECT_FALSE(bobs.exists("alice/x")) << "it counts, for who shows it";
}

TEST_F(FetchedByRules, EndWithoutBlame) {
  std::vector<std::string> words = source_line();
  words.insert(words.end(), {"--audit", path("source_audit")});
  const tool_server source(words);
  const tool_server target(line(rules_for_both, {"--fetch-from", "127.0.0.1"}));
  expect_copied_by("alice", {"--direct", source.url("alice/x"), target.url("alice/new")});
  for (const std::string audit : {"audit", "source_audit"}) {
    expect_line(audit, {{"event", "disconnect"}, {"for", "token \"alice\""}, {"outcome", "ok"}});
    EXPECT_FALSE(has_line(content_of(path(audit)), {{"event", "blame"}})) << audit;
  }
}

TEST_F(FetchedByRules, AreNotCompressedByTheAgentOfTheSource) {
  const tool_server source({"--tls", "--store", path("source"), "--agent"});
  const tool_server target(line(rules_for_both, {"--fetch-from", "127.0.0.1"}));
  expect_failure(copy_as("alice", {"--direct", "--compress", "zstd", source.url("alice/x"),
                                   target.url("alice/new")}),
                 5, "compresses nothing");
}

/// A client that does not keep to the rules of the conversation.
TEST_F(AgentRules, GiveNothingToAnAgentWithoutATicket) {
  const tool_server server(
      line("allow token own agent .ucxio-agent\n"
           "allow token own list,read,write,create both/**\n",
           {"--fetch-from", "any"}));
  folder_.make("store/both/x", "text");
  const std::string port = server.url().substr(server.url().rfind(':'));
  agent_talk talk = agent_talk::with_agent(server.url());
  const nlohmann::json outcome =
      outcome_of(talk, copy_question("ucxs://localhost" + port + "/both/x", server.url("both/y")));
  EXPECT_EQ(outcome["code"], 5) << outcome;
  // The copy has shown the one for this server.
  EXPECT_EQ(
      answer_of(talk, {{"ask", "open_source"}, {"name", "both/x"}, {"verify", false}})["code"], 5);
  EXPECT_FALSE(std::filesystem::exists(path("store/both/y")));
}

TEST_F(AgentRules, GiveNothingForATicketThatIsNone) {
  const tool_server server(line("allow token own agent .ucxio-agent\n", {"--fetch-from", "any"}));
  for (const std::string& tickets :
       {std::string("1"), std::string("[1]"), std::string(R"([{"server":"ucxs://h:1"}])"),
        std::string(R"([{"server":"ucxs://h:1","ticket":"short"}])"),
        std::string(R"([{"server":"/path","ticket":"00000000000000000000000000000000"}])")}) {
    agent_talk talk = agent_talk::with_agent(server.url());
    talk.say(agent_bytes(R"({"ask":"hello","version":1})"));
    EXPECT_TRUE(talk.hear());
    talk.say(agent_bytes(R"({"ask":"copy","from":["ucxs://h:1/x"],"to":"ucxs://h:1/y","tickets":)" +
                         tickets + '}'));
    const auto refused = talk.hear();
    ASSERT_TRUE(refused);
    EXPECT_THAT(refused->value("failed", ""), AnyOf(HasSubstr("ticket"), HasSubstr("no URL")));
  }
}

TEST_F(AgentRules, LetNoServerStartWhoseAgentTheyDeny) {
  for (const std::string denied :
       {"deny anybody all **\n", "deny token own agent,pipes **\nallow owner all **\n",
        "allow owner list **\nallow token own agent .ucxio-agent\ndeny anybody all **\n"}) {
    std::vector<std::string> words = line("allow token alice all **\n" + denied);
    words.insert(words.begin(), {"serve", "--quiet"});
    expect_failure(run_tool(words), 2, "allow owner all **");
  }
  folder_.make("here", "text");
  for (const std::string allowed :
       {"allow owner all **\ndeny anybody all **\n",
        "allow token own agent,pipes,list,write,create **\ndeny anybody all **\n"}) {
    const tool_server server(line("allow token alice all **\n" + allowed));
    expect_copied_by("alice", {"--compress", "zstd", path("here"), server.url("both/x")});
  }
}

TEST_F(AgentRules, AreSaidToLetNoAgentServe) {
  write_rules(rules_for_both);
  std::vector<std::string> words = line(rules_for_both, {"--bind", "127.0.0.1:0"});
  words.insert(words.begin(), {"serve", "--quiet"});
  command server(tool_program(), words, command::output::pipe);
  const std::string first = first_line(server);
  write_rules(std::string("deny token own all **\n") + rules_for_both);
  server.send_signal(SIGHUP);
  EXPECT_TRUE(soon([&] { return server.errors().find("read again") != std::string::npos; }));
  folder_.make("here", "text");
  const command_result refused =
      copy_as("alice", {"--timeout", "1", "--compress", "zstd", path("here"), first + "/both/x"});
  EXPECT_NE(refused.code, 0);
  EXPECT_TRUE(soon([&] { return server.errors().find("no agent serve") != std::string::npos; }));
}

/// A source that takes the connection, and leaves what it is asked unanswered.
TEST_F(AgentRules, AreNotWaitedForBehindAnInterruption) {
  const tool_server target(line(rules_for_both, {"--fetch-from", "any"}));
  child_process mute(sibling_program("ucxio-untruthful-server"), {"mute", ""});
  const std::string source = mute.read_line(std::chrono::seconds(30)).value_or("none");
  command copying(tool_program(), copying_as("alice", {"--timeout", "900", "--direct",
                                                       source + "/x", target.url("alice/x")}));
  EXPECT_EQ(mute.read_line(patience(std::chrono::seconds(30))), "unanswered: 26");
  copying.send_signal(SIGINT);
  const command_result ended = copying.finish(std::chrono::minutes(2));
  EXPECT_TRUE(ended.in_time);
  EXPECT_EQ(ended.signal, SIGINT) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("interrupted"));
  child_process old(sibling_program("ucxio-untruthful-server"), {"silent", ""});
  const std::string other = old.read_line(std::chrono::seconds(30)).value_or("none");
  expect_failure(copy_as("alice", {"--direct", other + "/x", target.url("alice/x")}), 1,
                 "knows none");
}

}  // namespace
}  // namespace ucx::test
