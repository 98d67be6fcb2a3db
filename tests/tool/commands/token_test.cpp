// Tokens, and servers by TLS, as users of the tool have them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/process/command.hpp"
#include "support/tool/tool.hpp"

namespace ucx::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Token : public ::testing::Test {
 protected:
  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  /// Returns the token that was made, in one line.
  std::string make(const std::string& name, const std::string& in) const {
    const command_result made = run_tool({"token", "new", name, "--token-file", file(in)});
    EXPECT_EQ(made.code, 0) << made.err;
    EXPECT_THAT(made.out, StartsWith("ucxt1-"));
    return made.out;
  }
  command_result add(const std::string& host, const std::string& text,
                     const std::string& in) const {
    return shell("printf '%s' '" + text + "' | " + tool_program() + " token add " + host +
                 " --token-file " + file(in));
  }
  static command_result shell(const std::string& line) {
    return command("/bin/sh", {"-c", line}).finish();
  }

  temporary_directory folder_;
};

TEST_F(Token, IsMadeListedAndRemoved) {
  const std::string first = make("alice", "tokens");
  EXPECT_NE(make("alice", "tokens"), first);
  EXPECT_EQ(add("node7", first, "tokens").code, 0);
  const command_result listed = run_tool({"token", "list", "--token-file", file("tokens")});
  EXPECT_EQ(listed.out, "accept alice\naccept alice\nuse    node7\n");
  EXPECT_EQ(run_tool({"token", "remove", "alice", "--oldest", "--token-file", file("tokens")}).code,
            0);
  EXPECT_EQ(run_tool({"token", "list", "--token-file", file("tokens")}).out,
            "accept alice\nuse    node7\n");
  EXPECT_EQ(run_tool({"token", "remove", "alice", "--token-file", file("tokens")}).code, 0);
  expect_failure(run_tool({"token", "remove", "alice", "--token-file", file("tokens")}), 3,
                 "alice");
}

TEST_F(Token, LiesInTheUsersConfigurationByDefault) {
  const command_result made = shell("unset UCXIO_TOKEN; XDG_CONFIG_HOME=" + file("config") + ' ' +
                                    tool_program() + " token new alice");
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(content_of(folder_ / "config/ucxio/tokens"), "accept alice " + made.out);
}

/// A program that reads a named pipe would wait for its writer.
TEST_F(Token, IsInNoNamedPipe) {
  ASSERT_EQ(::mkfifo(file("pipe").c_str(), 0600), 0);
  expect_failure(run_tool({"token", "list", "--token-file", file("pipe")}), 1, "no regular file");
}

TEST_F(Token, LeavesALinkToItsFile) {
  make("alice", "tokens");
  std::filesystem::create_symlink("tokens", folder_ / "link");
  make("bob", "link");
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "link"));
  EXPECT_EQ(run_tool({"token", "list", "--token-file", file("tokens")}).out,
            "accept alice\naccept bob\n");
}

TEST_F(Token, IsNotRepeatedInMessages) {
  std::string text = make("alice", "tokens");
  text.pop_back();
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"cat", "ucxs://" + text + "@host:1/data"},
        {"token", "add", "host", text},
        {"cat", "--token-file", text, "ucxs://127.0.0.1:1/data"}}) {
    const command_result told = run_tool(wrong);
    EXPECT_NE(told.code, 0);
    EXPECT_THAT(told.err, HasSubstr("ucxt1-..."));
    EXPECT_THAT(told.err, Not(HasSubstr(text)));
  }
}

TEST_F(Token, IsNeverAnArgument) {
  std::string text = make("alice", "tokens");
  text.pop_back();
  const command_result told = run_tool({"token", "add", text, "--token-file", file("tokens")});
  expect_failure(told, 2, "standard input");
  EXPECT_THAT(told.err, Not(HasSubstr(text)));
  expect_failure(run_tool({"token", "add", "node7", text, "--token-file", file("tokens")}), 2, "");
}

TEST_F(Token, IsRefusedWhenItIsDamaged) {
  std::string text = make("alice", "tokens");
  text[20] = text[20] == 'a' ? 'b' : 'a';
  const command_result told = add("node7", text, "tokens");
  EXPECT_NE(told.code, 0);
  EXPECT_THAT(told.err, HasSubstr("is damaged"));
}

class ServedByTls : public Token {
 protected:
  ServedByTls() {
    std::filesystem::create_directory(folder_ / "store");
    const std::string text = make("alice", "servers");
    EXPECT_EQ(add("127.0.0.1", text, "clients").code, 0);
    make("own", "others");
  }
  std::vector<std::string> arguments() const {
    return {"--tls",
            "--token-file",
            file("servers"),
            "--store",
            "s=" + file("store"),
            "--writable",
            "--pipes",
            folder_.make("notes.txt", "one\ntwo\n").string()};
  }
  command_result by(const std::string& tokens, std::vector<std::string> line) const {
    line.insert(line.end(), {"--token-file", file(tokens)});
    return run_tool(line);
  }
};

TEST_F(ServedByTls, IsReadAndWritten) {
  const tool_server server(arguments());
  EXPECT_THAT(server.url(), StartsWith("ucxs://127.0.0.1:"));
  EXPECT_EQ(by("clients", {"cat", server.url("notes.txt")}).out, "one\ntwo\n");
  EXPECT_THAT(by("clients", {"ls", server.url()}).out, HasSubstr("notes.txt"));
  const std::string more = folder_.make("more", std::string(3'000'000, 'x')).string();
  EXPECT_EQ(by("clients", {"cp", more, server.url("s/more")}).code, 0);
  EXPECT_EQ(content_of(folder_ / "store/more"), content_of(more));
  EXPECT_EQ(by("clients", {"cp", server.url("s/more"), file("back")}).code, 0);
  EXPECT_EQ(content_of(folder_ / "back"), content_of(more));
  const command_result put = shell("echo three | " + tool_program() + " put " +
                                   server.url("s/three") + " --token-file " + file("clients"));
  EXPECT_EQ(put.code, 0) << put.err;
  EXPECT_EQ(content_of(folder_ / "store/three"), "three\n");
  const command_result told = by("clients", {"info", server.url("notes.txt")});
  EXPECT_THAT(told.out, HasSubstr("connection  tls/tcp\nprotection  TLS 1.3, by a token\n"));
}

TEST_F(ServedByTls, RefusesAnotherToken) {
  const tool_server server(arguments());
  expect_failure(by("others", {"cat", server.url("notes.txt")}), 5, "refused the token");
  expect_failure(by("others", {"ls", server.url()}), 5, "refused the token");
  expect_failure(by("none", {"cat", server.url("notes.txt")}), 5, "there is no token");
  ASSERT_EQ(::chmod(file("clients").c_str(), 0644), 0);
  expect_failure(by("clients", {"cat", server.url("notes.txt")}), 5, "0644");
  const std::string clear = "ucx+tcp" + server.url("notes.txt").substr(4);
  expect_failure(run_tool({"cat", clear}), 5, "ucxs://");
}

TEST_F(ServedByTls, TakesATokenOfTheEnvironmentAndOfADescriptor) {
  const tool_server server(arguments());
  const std::string text = make("bob", "servers");
  const std::string cat = tool_program() + " cat " + server.url("notes.txt");
  const std::string by_variable = "UCXIO_TOKEN=" + text.substr(0, 70) + ' ' + cat;
  EXPECT_TRUE(soon([&] { return shell(by_variable).out == "one\ntwo\n"; })) << "it is known soon";
  EXPECT_EQ(shell("exec 7<" + file("clients") + "; " + cat + " --token-file /dev/fd/7").out,
            "one\ntwo\n");
}

TEST_F(ServedByTls, PipesBetweenTwoWhoHaveOneToken) {
  const std::string token = "UCXIO_TOKEN=" + make("bob", "servers").substr(0, 70) + ' ';
  const tool_server server(arguments());
  const std::string pipe = token + tool_program() + " pipe ";
  const command_result moved =
      shell("head -c 2000000 /dev/zero | " + pipe + "send " + server.url("p") + " & " + pipe +
            "receive " + server.url("p") + " | wc -c; wait");
  EXPECT_EQ(moved.out, "2000000\n") << moved.err;
}

TEST_F(ServedByTls, SaysWhatContradictsIt) {
  expect_failure(run_tool({"serve", "--tls", "--socket"}), 2, "--tls");
  expect_failure(run_tool({"serve", "--socket", "--token-file", file("servers")}), 2, "--socket");
  expect_failure(run_tool({"serve", "--tls", "--token-file", file("none")}), 5, "ucxio token new");
}

}  // namespace
}  // namespace ucx::test
