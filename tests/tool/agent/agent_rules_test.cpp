// The agent of a server with rules: it may what its client may. Clients are told apart by tokens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/basics/changed_variable.hpp"
#include "support/basics/soon.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/process/command.hpp"
#include "support/tool/agent_talk.hpp"
#include "support/tool/copy_place.hpp"
#include "support/tool/tool.hpp"

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

/// This user has tokens of its own, and ones for alice and bob, each of which has a file.
class AgentRules : public ::testing::Test {
 protected:
  AgentRules() {
    std::filesystem::create_directory(folder_ / "run");
    std::filesystem::permissions(folder_ / "run", std::filesystem::perms::owner_all);
    EXPECT_EQ(run_tool({"token", "new", "own"}).code, 0);
    for (const std::string who : {"alice", "bob"}) {
      const std::string token = run_tool({"token", "new", who}).out;
      const std::string add = "printf %s '" + token + "' | " + tool_program() +
                              " token add 127.0.0.1 --token-file " + path(who);
      EXPECT_EQ(command("/bin/sh", {"-c", add}).finish().code, 0);
      std::filesystem::create_directories(folder_ / ("store/" + who));
    }
    std::filesystem::create_directories(folder_ / "store/both");
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  /// At once, and writable for nobody else.
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
  void expect_in_audit(const std::string& words) const {
    EXPECT_TRUE(soon([&] { return content_of(path("audit")).find(words) != std::string::npos; }))
        << words << " in\n"
        << content_of(path("audit"));
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

TEST_F(CompressedByRules, NeedTheRightToCallTheAgent) {
  const tool_server server(line("allow token alice list,read,write,create **\n"));
  folder_.make("here", "text");
  EXPECT_EQ(compress_as("alice", path("here"), server.url("both/x")).code, 5);
  EXPECT_FALSE(std::filesystem::exists(path("store/both/x")));
}

TEST_F(CompressedByRules, EndWhenTheRulesDoNotAllowThemAnyMore) {
  tool_server server(line(rules_for_both));
  folder_.make("here", pattern_text(64 * mib));
  const auto running = begin_as("alice", {"--compress", "lz4", path("here"), server.url("alice/x")},
                                path("store/alice/.x.ucxio-part"));
  write_rules("allow token alice agent .ucxio-agent\nallow token alice list,read **\n");
  server.process().send_signal(SIGHUP);
  EXPECT_NE(running->finish().code, 0);
  EXPECT_FALSE(std::filesystem::exists(path("store/alice/x")));
}

TEST_F(CompressedByRules, EndWithTheTokenOfTheirClient) {
  const tool_server server(line(rules_for_both));
  folder_.make("here", pattern_text(64 * mib));
  const auto running = begin_as("alice", {"--compress", "lz4", path("here"), server.url("alice/x")},
                                path("store/alice/.x.ucxio-part"));
  EXPECT_EQ(run_tool({"token", "remove", "alice"}).code, 0);
  EXPECT_NE(running->finish().code, 0);
  EXPECT_FALSE(std::filesystem::exists(path("store/alice/x")));
  expect_copied_by("bob", {"--compress", "lz4", path("here"), server.url("bob/x")});
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

TEST_F(FetchedByRules, EndWhenTheRulesDoNotAllowThemAnyMore) {
  const tool_server source(source_line());
  tool_server target(line(rules_for_both, {"--fetch-from", "127.0.0.1"}));
  folder_.make("source/alice/large", pattern_text(64 * mib));
  const auto running =
      begin_as("alice", {"--direct", source.url("alice/large"), target.url("alice/x")},
               path("store/alice/.x.ucxio-part"));
  write_rules("allow token alice list,read **\n");
  target.process().send_signal(SIGHUP);
  EXPECT_NE(running->finish().code, 0);
  EXPECT_FALSE(std::filesystem::exists(path("store/alice/x")));
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
  using json = nlohmann::json;
  const tool_server server(
      line("allow token own agent .ucxio-agent\n"
           "allow token own list,read,write,create both/**\n",
           {"--fetch-from", "any"}));
  folder_.make("store/both/x", "text");
  const std::string port = server.url().substr(server.url().rfind(':'));
  const json copy{{"ask", "copy"},
                  {"from", {"ucxs://localhost" + port + "/both/x"}},
                  {"to", server.url("both/y")},
                  {"recursive", false},
                  {"verify", false},
                  {"resume", false},
                  {"sparse", false},
                  {"preserve", false},
                  {"codec", "none"},
                  {"parallel", 1},
                  {"rate", 0},
                  {"timeout_ms", 20000}};
  agent_talk talk = agent_talk::with_agent(server.url());
  const auto ask = [&talk](const json& question) {
    talk.say(agent_bytes(question.dump()));
    return talk.hear().value_or(json("the end"));
  };
  const json needs{{"needs_tickets", true}};
  EXPECT_EQ(ask({{"ask", "hello"}, {"version", 1}}), needs);
  EXPECT_EQ(ask(copy), json::object());
  json news;
  EXPECT_TRUE(soon([&] {
    news = ask({{"ask", "look"}});
    return !news.is_object() || !news.contains("over") || news["over"] == true;
  }));
  EXPECT_EQ(news["outcome"]["code"], 5) << news;
  // The copy has shown the one for this server.
  EXPECT_EQ(ask({{"ask", "open_source"}, {"name", "both/x"}, {"verify", false}})["code"], 5);
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
  std::vector<std::string> words = line("allow token alice all **\ndeny anybody all **\n");
  words.insert(words.begin(), {"serve", "--quiet"});
  expect_failure(run_tool(words), 2, "allow owner all **");
  const tool_server server(
      line("allow token alice all **\nallow owner all **\n"
           "deny anybody all **\n"));
  folder_.make("here", "text");
  expect_copied_by("alice", {"--compress", "zstd", path("here"), server.url("both/x")});
}

}  // namespace
}  // namespace ucx::test
