// A server's agent, as it is spoken to by who does not keep to its rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "support/command.hpp"
#include "support/temporary_directory.hpp"
#include "support/tool.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/url.hpp"

namespace ucx::test {
namespace {

using ::testing::HasSubstr;
using json = nlohmann::json;

std::string as_length(std::uint32_t length) {
  std::string bytes;
  for (unsigned shift = 0; shift < 32; shift += 8) {
    bytes.push_back(static_cast<char>(length >> shift & 0xffU));
  }
  return bytes;
}

/// Returns a message as it is on the pipe.
std::string message(const std::string& header, const std::string& payload = {}) {
  return as_length(static_cast<std::uint32_t>(header.size())) +
         as_length(static_cast<std::uint32_t>(payload.size())) + header + payload;
}

const std::string hello = message(R"({"ask":"hello","version":1})");

/// A conversation with the agent of a server.
class spoken_to {
 public:
  explicit spoken_to(const std::string& server) {
    const std::string name = "0123456789abcdef0123456789abcdef";
    opipestream call(server + "/.ucxio-agent");
    call << name;
    call.close();
    EXPECT_FALSE(call.fail()) << call.error_message();
    pipe_ = std::make_unique<pipestream>(server + "/.ucxio-agent/" + name, bounded());
    EXPECT_TRUE(pipe_->is_open()) << pipe_->error_message();
  }

  void say(const std::string& bytes) { *pipe_ << bytes << std::flush; }
  void end() { pipe_->close_output(); }
  /// Returns the header of the next answer; nothing where the conversation has ended.
  std::optional<json> hear() {
    std::string lengths(8, '\0');
    if (!pipe_->read(lengths.data(), 8)) return std::nullopt;
    std::string header(
        static_cast<unsigned char>(lengths[0]) + 256U * static_cast<unsigned char>(lengths[1]),
        '\0');
    pipe_->read(header.data(), static_cast<std::streamsize>(header.size()));
    return json::parse(header, nullptr, false);
  }

 private:
  static pipe_options bounded() {
    pipe_options options;
    options.timeout = std::chrono::seconds(20);
    return options;
  }

  std::unique_ptr<pipestream> pipe_;
};

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
  const std::string copy = R"({"ask":"copy","from":["ucx://127.0.0.1:1/x"],"to":"ucx://h:1/y",)"
                           R"("recursive":false,"verify":false,"resume":false,"sparse":false,)"
                           R"("preserve":false,"parallel":1,"rate":0,"timeout_ms":0})";
  const auto with = [&](const char* member, const json& value) {
    json changed = json::parse(copy);
    changed[member] = value;
    return hello + message(changed.dump());
  };
  const std::vector<std::string> wrong{
      as_length(0) + as_length(0),
      as_length((64 << 10) + 1) + as_length(0) + std::string(100, ' '),
      as_length(2) + as_length((1 << 20) + 1) + "{}",
      as_length(0xffffffffU) + as_length(0xffffffffU),
      message("x"),
      message("[]"),
      message("{}"),
      message("\xff\xfe"),
      message(std::string(60'000, '[')),
      message(R"({"ask":7})"),
      message(R"({"ask":"look"})"),
      message(R"({"ask":"hello"})"),
      message(R"({"ask":"hello","version":"1"})"),
      message(R"({"ask":"hello","version":2})"),
      message(R"({"ask":"hello","version":-1})"),
      hello + message(R"({"ask":"everything"})"),
      hello + message(R"({"ask":"look"})"),
      hello + message(R"({"ask":"stop"})"),
      hello + message(R"({"ask":"copy"})"),
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
  };
  for (const std::string& bytes : wrong) {
    spoken_to agent(server_.url());
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
  const std::string whole = message(R"({"ask":"hello","version":1})", "payload");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    if (length > 12 && length + 12 < whole.size()) continue;
    spoken_to agent(server_.url());
    agent.say(whole.substr(0, length));
    agent.end();
    const std::optional<json> answer = agent.hear();
    EXPECT_EQ(answer.has_value(), length > 0);
    EXPECT_EQ(answer.value_or(json{{"code", 4}})["code"], 4);
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
      spoken_to agent(server_.url());
      agent.say(hello + message(changed.dump()));
      ASSERT_EQ(agent.hear(), json::object());
      const std::optional<json> answer = agent.hear();
      ASSERT_TRUE(answer.has_value());
      EXPECT_EQ((*answer)["code"], 2) << path << *answer;
    }
  }
  expect_alive();
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
  spoken_to idle(server_.url());
  const opipestream silent(server_.url(".ucxio-agent"));
  server_.process().send_signal(SIGTERM);
  EXPECT_EQ(server_.process().wait(std::chrono::seconds(20)), 0);
  EXPECT_EQ(idle.hear(), std::nullopt);
}

}  // namespace
}  // namespace ucx::test
