// A server's agent, as it is spoken to by who does not keep to its rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/files/temporary_directory.hpp"
#include "support/process/command.hpp"
#include "support/tool/agent_talk.hpp"
#include "support/tool/tool.hpp"
#include "ucx/content_digest.hpp"
#include "ucx/pipe_stream.hpp"

namespace ucx::test {
namespace {

using ::testing::HasSubstr;
using json = nlohmann::json;

const std::string hello = agent_bytes(R"({"ask":"hello","version":1})");

class Agent : public ::testing::Test {
 protected:
  Agent() { files_.make("x", "content"); }

  /// Expects that others are served.
  void expect_alive() {
    const command_result result = run_tool({"cp", "--direct", server_.url("x"), server_.url("y")});
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(content_of(files_ / "y"), "content");
  }

  const temporary_directory files_;
  tool_server server_{
      {"--store", (files_ / "").string(), "--writable", "--fetch-from", "127.0.0.1"}};
};

TEST_F(Agent, EndsAConversationThatItDoesNotUnderstand) {
  const std::string copy =
      R"({"ask":"copy","from":["ucx://127.0.0.1:1/x"],"to":"ucx://h:1/y",)"
      R"("recursive":false,"verify":false,"resume":false,"sparse":false,)"
      R"("preserve":false,"codec":"none","parallel":1,"rate":0,"timeout_ms":0})";
  const auto with = [&](const char* member, const json& value) {
    json changed = json::parse(copy);
    changed[member] = value;
    return hello + agent_bytes(changed.dump());
  };
  const std::vector<std::string> wrong{
      as_length(0) + as_length(0),
      as_length((64 << 10) + 1) + as_length(0) + std::string(100, ' '),
      as_length(2) + as_length((1 << 20) + 1) + "{}",
      as_length(0xffffffffU) + as_length(0xffffffffU),
      agent_bytes("x"),
      agent_bytes("[]"),
      agent_bytes("{}"),
      agent_bytes("\xff\xfe"),
      agent_bytes(std::string(60'000, '[')),
      agent_bytes(R"({"ask":7})"),
      agent_bytes(R"({"ask":"look"})"),
      agent_bytes(R"({"ask":"hello"})"),
      agent_bytes(R"({"ask":"hello","version":"1"})"),
      agent_bytes(R"({"ask":"hello","version":2})"),
      agent_bytes(R"({"ask":"hello","version":-1})"),
      hello + agent_bytes(R"({"ask":"everything"})"),
      hello + agent_bytes(R"({"ask":"look"})"),
      hello + agent_bytes(R"({"ask":"stop"})"),
      hello + agent_bytes(R"({"ask":"copy"})"),
      with("to", 1),
      with("from", "ucx://127.0.0.1:1/x"),
      with("from", json::array()),
      with("from", {1, 2}),
      with("from", std::vector<std::string>(5000, "x")),
      with("recursive", 1),
      with("parallel", 65),
      with("rate", -1),
      with("rate", 1.5),
      with("timeout_ms", "soon"),
      with("codec", "zip"),
      with("codec", 1),
      hello + agent_bytes(R"({"ask":"open_source"})"),
      hello + agent_bytes(R"({"ask":"open_source","name":7,"verify":false})"),
      hello + agent_bytes(R"({"ask":"open_target","name":"y","size":-1})"),
      hello + agent_bytes(R"({"ask":"read","id":1,"offset":0,"size":1,"codec":"none"})"),
      hello + agent_bytes(R"({"ask":"write","id":1})"),
      hello + agent_bytes(R"({"ask":"close_source"})"),
  };
  for (const std::string& bytes : wrong) {
    agent_talk agent = agent_talk::with_agent(server_.url());
    agent.say(bytes);
    std::optional<json> answer = agent.hear();
    if (answer && bytes.starts_with(hello)) answer = agent.hear();
    ASSERT_TRUE(answer.has_value()) << bytes.substr(0, 200);
    EXPECT_EQ((*answer)["code"], 4) << *answer;
    EXPECT_EQ(agent.hear(), std::nullopt);
  }
  expect_alive();
}

TEST_F(Agent, LivesThroughHalfAMessage) {
  const std::string whole = agent_bytes(R"({"ask":"hello","version":1})", "payload");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    if (length > 12 && length + 12 < whole.size()) continue;
    agent_talk::with_agent(server_.url()).say(whole.substr(0, length));
  }
  expect_alive();
}

TEST_F(Agent, TakesNoPaths) {
  json copy{{"ask", "copy"},          {"from", {server_.url("x")}},
            {"to", server_.url("y")}, {"recursive", false},
            {"verify", false},        {"resume", false},
            {"sparse", false},        {"preserve", false},
            {"parallel", 1},          {"rate", 0},
            {"timeout_ms", 0}};
  const std::string own = (files_ / "x").string();
  for (const std::string& path :
       {own, "ucx+file://" + own, "ucx:" + own, std::string("ucx://"), std::string()}) {
    for (const std::string member : {"from", "to"}) {
      json changed = copy;
      changed[member] = member == "from" ? json::array({path}) : json(path);
      agent_talk agent = agent_talk::with_agent(server_.url());
      agent.say(hello + agent_bytes(changed.dump()));
      ASSERT_EQ(agent.hear(), json::object());
      const std::optional<json> answer = agent.hear();
      ASSERT_TRUE(answer.has_value());
      EXPECT_EQ((*answer)["code"], 2) << path << *answer;
    }
  }
  expect_alive();
}

/// Begins a conversation, and opens "x" to read (1) and "z" to write (2).
class AgentEnds : public Agent {
 protected:
  AgentEnds() : talk_(agent_talk::with_agent(server_.url())) {
    files_.make("x", std::string(1000, 'x'));
    talk_.say(hello);
    EXPECT_EQ(talk_.hear(), json::object());
    EXPECT_EQ(ask(R"({"ask":"open_source","name":"x","verify":false})")["size"], 1000);
    EXPECT_EQ(
        ask(R"({"ask":"open_target","name":"z","size":4,"verify":false,"resume":false})")["id"], 2);
  }
  json ask(const std::string& header, const std::string& payload = {}) {
    talk_.say(agent_bytes(header, payload));
    return talk_.hear().value_or("the end");
  }

  agent_talk talk_;
};

TEST_F(AgentEnds, CompressWhereItMakesAPieceShorter) {
  const std::string read = R"({"ask":"read","id":1,"offset":)";
  for (const std::string by : {"zstd", "lz4"}) {
    EXPECT_EQ(ask(read + R"(0,"size":1000,"codec":")" + by + "\"}")["codec"], by);
    EXPECT_LT(talk_.payload.size(), 100U);
    EXPECT_EQ(ask(read + R"(0,"size":3,"codec":")" + by + "\"}")["codec"], "none");
    EXPECT_EQ(talk_.payload, "xxx");
  }
  EXPECT_EQ(ask(read + R"(0,"size":1000,"codec":"none"})")["codec"], "none");
  EXPECT_EQ(talk_.payload, std::string(1000, 'x'));
  EXPECT_NE(ask(read + R"(999,"size":2,"codec":"none"})")["code"], 0);
  EXPECT_EQ(ask(read + R"(0,"size":1048577,"codec":"none"})")["code"], 4);
}

TEST_F(AgentEnds, TakeNoPieceThatWasDamaged) {
  const auto write = [](const std::string& digest, const std::string& by) {
    return R"({"ask":"write","id":2,"offset":0,"size":4,"codec":")" + by + R"(","digest":")" +
           digest + "\"}";
  };
  const std::string zeros(32, '0');
  for (const std::string by : {"none", "zstd", "lz4"}) {
    EXPECT_EQ(ask(write(zeros, by), "some")["code"], 10);
    EXPECT_EQ(ask(write(zeros, by), std::string(100, '\xff'))["code"], 10);
    EXPECT_EQ(ask(write(zeros, by))["code"], 10);
  }
  const content_digest right = digest_of(std::as_bytes(std::span(std::string_view("some"))));
  EXPECT_EQ(ask(write(to_string(right), "none"), "some"), json::object());
  EXPECT_EQ(ask(R"({"ask":"complete","id":2,"size":4})"), json::object());
  EXPECT_EQ(ask(R"({"ask":"commit","id":2})"), json::object());
  EXPECT_EQ(ask(R"({"ask":"close_target","id":2})"), json::object());
  EXPECT_EQ(content_of(files_ / "z"), "some");
  EXPECT_EQ(ask(write("short", "none"), "some")["code"], 4);
}

TEST_F(AgentEnds, AreSoManyAtMost) {
  for (int i = 0; i < 126; ++i) {
    const json opened = ask(R"({"ask":"open_source","name":"x","verify":false})");
    EXPECT_TRUE(opened.contains("id")) << opened;
  }
  EXPECT_EQ(ask(R"({"ask":"open_source","name":"x","verify":false})")["code"], 1);
  EXPECT_EQ(ask(R"({"ask":"close_source","id":1})"), json::object());
  EXPECT_TRUE(ask(R"({"ask":"open_source","name":"x","verify":false})").contains("id"));
}

TEST_F(Agent, LivesThroughCallersThatAreNone) {
  for (const std::string& name : {std::string(), std::string("short"), std::string(32, '/'),
                                  std::string(32, 'X'), std::string(5'000, '0')}) {
    opipestream call(server_.url(".ucxio-agent"));
    call << name;
    call.close();
  }
  {
    const opipestream silent(server_.url(".ucxio-agent"));
    const opipestream another(server_.url(".ucxio-agent"));
    expect_alive();
  }
  // Who is called, and does not come, keeps nobody waiting.
  opipestream call(server_.url(".ucxio-agent"));
  call << std::string(32, '0');
  call.close();
  expect_alive();
}

TEST_F(Agent, EndsWithItsServerWhateverItsClientsDo) {
  agent_talk idle = agent_talk::with_agent(server_.url());
  const opipestream silent(server_.url(".ucxio-agent"));
  server_.process().send_signal(SIGTERM);
  EXPECT_EQ(server_.process().wait(std::chrono::seconds(20)), 0);
  EXPECT_EQ(idle.hear(), std::nullopt);
}

}  // namespace
}  // namespace ucx::test
