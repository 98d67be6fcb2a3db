// Ends of pipes that do not trust each other's user: by TLS, with tokens of one server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "support/basics/changed_variable.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/tool/tool.hpp"

namespace ucx::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// This user has tokens of its own, and one for "bob", whose file is another one.
class PipeTrust : public ::testing::Test {
 protected:
  PipeTrust() {
    std::filesystem::create_directory(folder_ / "run");
    std::filesystem::permissions(folder_ / "run", std::filesystem::perms::owner_all);
    EXPECT_EQ(run_tool({"token", "new", "own"}).code, 0);
    const std::string token = run_tool({"token", "new", "bob"}).out;
    const std::string add =
        "printf %s '" + token + "' | " + tool_program() + " token add 127.0.0.1 " + bob();
    EXPECT_EQ(command("/bin/sh", {"-c", add}).finish().code, 0);
  }
  std::string bob() const { return "--token-file " + (folder_ / "bobs").string(); }
  std::string own() const { return "--token-file " + (folder_ / "config/ucxio/tokens").string(); }
  /// Runs an end that listens, and one of bob's that does what that says.
  struct outcome {
    command_result both;
    std::string url;
    std::string said;  // by bob's
    std::string told;  // by the other
  };
  /// `then`: what a shell does behind bob's end, with the other one still there.
  outcome pipe(const std::string& listens, const std::string& options,
               const std::string& then = "wait") const {
    const std::string told = folder_ / "told";
    const std::string said = folder_ / "said";
    const std::string tool = tool_program();
    const bool sends = listens == "send";
    const std::string input = "echo over | ";
    // Without the words of the end before.
    const std::string line = ": >" + told + "; " + (sends ? input : "") + tool + " pipe " +
                             listens + ' ' + options + " 2>" + told + " & until grep -qs :// " +
                             told + " || ! kill -0 $!; do sleep 0.05; done; " +
                             (sends ? "" : input) + tool + " pipe " + (sends ? "receive" : "send") +
                             " $(sed 's|.* ||' " + told + ") --timeout 20 " + bob() + " 2>" + said +
                             "; echo code=$?; " + then;
    outcome made{command("/bin/sh", {"-c", line}).finish(), "", content_of(said), content_of(told)};
    made.url = made.told.substr(made.told.find_last_of(' ') + 1);
    return made;
  }

  const temporary_directory folder_;
  const changed_variable config_{"XDG_CONFIG_HOME", (folder_ / "config").c_str()};
  const changed_variable run_{"XDG_RUNTIME_DIR", (folder_ / "run").c_str()};
  const changed_variable token_{"UCXIO_TOKEN", nullptr};
};

TEST_F(PipeTrust, LetsAnEndWithATokenOfThisUsersMeetInBothDirections) {
  for (const std::string& options : {std::string("--tls"), own()}) {
    for (const std::string listens : {"receive", "send"}) {
      const outcome met = pipe(listens, options);
      EXPECT_THAT(met.url, StartsWith("ucxs://127.0.0.1:"));
      EXPECT_THAT(met.both.out, HasSubstr("over\n")) << listens << ' ' << options << met.said;
      EXPECT_THAT(met.both.out, HasSubstr("code=0\n")) << met.said;
      EXPECT_EQ(met.said, "");
    }
  }
}

/// This user's end has come by the Unix socket. The one that comes later is told, and the other one
/// may wait on.
TEST_F(PipeTrust, SaysThatBothEndsHaveToComeTheSameWay) {
  const outcome met = pipe("receive", "--timeout 60", "kill $! 2>/dev/null; wait");
  EXPECT_THAT(met.said + met.told, HasSubstr("on both sides"));
}

TEST_F(PipeTrust, NeedsATokenBeyondLoopbackAsServeDoes) {
  const changed_variable config("XDG_CONFIG_HOME", (folder_ / "elsewhere").c_str());
  const command_result refused = run_tool({"pipe", "receive", "--bind", "0.0.0.0:0"});
  expect_failure(refused, 5, "ucxio token new");
  EXPECT_EQ(refused.err, run_tool({"serve", "--bind", "0.0.0.0:0"}).err);
}

}  // namespace
}  // namespace ucx::test
