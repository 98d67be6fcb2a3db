// `ucxio put`, `mv`, `rm` and `hash`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/tool/tool.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/content_digest.hpp"
#include "ucx/error.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string hash_of(const std::string& text) {
  return to_string(digest_of(std::as_bytes(std::span(text))));
}

class StoreCommands : public ::testing::Test {
 protected:
  std::string there(const std::string& name) const { return (store_ / name).string(); }
  std::string url(const std::string& name) const { return server_.url(name); }

  /// Runs a line of a shell in which $0 is the program, $1 the server and $2 a directory.
  command_result shell(const std::string& line) {
    command running("/bin/bash", {"-c", "set -o pipefail; " + line, tool_program(), server_.url(),
                                  (folder_ / "").string()});
    return running.finish();
  }
  /// Expects that it went well, and said nothing.
  void quietly(const std::vector<std::string>& arguments) {
    const command_result result = run_tool(arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.out + result.err, "");
  }

  const temporary_directory folder_;
  const temporary_directory store_;
  tool_server server_{{"--store", (store_ / "").string(), "--writable"}};
};

TEST_F(StoreCommands, PutTheStandardInput) {
  EXPECT_EQ(shell("printf text | \"$0\" put \"$1/sub/x\"").err, "");
  EXPECT_EQ(content_of(there("sub/x")), "text");
  EXPECT_EQ(shell("\"$0\" put \"$1/sub/x\" < /dev/null").code, 0);
  EXPECT_EQ(content_of(there("sub/x")), "");
  const command_result large =
      shell("head -c 5000003 /dev/zero | \"$0\" put --progress json \"$1/large\"");
  EXPECT_EQ(large.code, 0) << large.err;
  EXPECT_THAT(large.err, HasSubstr("{\"bytes\":5000003,\"total_bytes\":null"));
  EXPECT_EQ(std::filesystem::file_size(there("large")), 5000003U);
}

TEST_F(StoreCommands, PutIsToldOfARateThatIsNone) {
  for (const std::string wrong : {"nonsense", "1.5G", "-1", "4X", "1GG", ""}) {
    expect_failure(shell("exec \"$0\" put --bwlimit '" + wrong + "' \"$1/x\" < /dev/null"), 2,
                   "\"" + wrong + "\" is not a whole number of bytes");
  }
  expect_failure(shell("exec \"$0\" put --bwlimit 0K \"$1/x\" < /dev/null"), 2, "never end");
  EXPECT_EQ(shell("exec \"$0\" put --bwlimit '4 MiB' \"$1/x\" < /dev/null").err, "");
}

TEST_F(StoreCommands, PutNothingWhereTheInputFails) {
  store_.make("x", "old");
  expect_failure(shell("exec \"$0\" put \"$1/x\" < /"), 1, "Is a directory");
  expect_failure(shell("exec \"$0\" put \"$1/x\" <&-"), 1, "standard input");
  EXPECT_EQ(content_of(there("x")), "old");
  // Interrupted in the middle.
  command running("/bin/bash", {"-c", "exec \"$0\" put --bwlimit 100K \"$1/x\" < /dev/zero",
                                tool_program(), server_.url()});
  const auto spooled = [this] {
    std::error_code ec;
    const std::filesystem::directory_iterator at(store_ / ".ucxio-unfinished", ec);
    return !ec && at != std::filesystem::directory_iterator();
  };
  EXPECT_TRUE(soon(spooled));
  running.send_signal(SIGINT);
  EXPECT_EQ(running.finish().signal, SIGINT);
  EXPECT_TRUE(soon([&] { return !spooled(); }));
  EXPECT_EQ(content_of(there("x")), "old");
}

TEST_F(StoreCommands, PutTellsOfAFullDisk) {
  const tool_server small({"--memory-store", "64K"});
  command running("/bin/bash", {"-c", "head -c 1000000 /dev/zero | \"$0\" put \"$1\"",
                                tool_program(), small.url("x")});
  const command_result full = running.finish();
  expect_failure(full, 12, small.url("x"));
  const std::string why = make_error_code(errc::no_space).message();
  ASSERT_NE(full.err.find(why), std::string::npos) << full.err;
  EXPECT_EQ(full.err.find(why), full.err.rfind(why)) << "said twice: " << full.err;
  expect_failure(run_tool({"cat", small.url("x")}), 3, "x");
}

TEST_F(StoreCommands, RemovingAndHashingGoOnWhereTheyCan) {
  std::filesystem::create_directories(store_ / "d");
  store_.make("x", "1");
  store_.make("d/in", "1");
  const command_result left = run_tool({"rm", url("d"), url("x")});
  EXPECT_EQ(left.code, 11) << left.err;
  EXPECT_FALSE(std::filesystem::exists(there("x")));
  store_.make("x", "1");
  const std::string nobody = "ucx://127.0.0.1:1/x";
  expect_failure(run_tool({"rm", nobody, url("x")}), 4, "127.0.0.1:1");
  EXPECT_TRUE(std::filesystem::exists(there("x")));
  const command_result hashed = run_tool({"hash", url("gone"), url("x")});
  EXPECT_EQ(hashed.code, 11) << hashed.err;
  EXPECT_THAT(hashed.out, HasSubstr(url("x")));
}

TEST_F(StoreCommands, MoveWithinAStore) {
  store_.make("x", "1");
  std::filesystem::create_directories(store_ / "sub");
  quietly({"mv", url("x"), url("y")});
  EXPECT_EQ(content_of(there("y")), "1");
  quietly({"mv", url("y"), url("sub")});
  EXPECT_EQ(content_of(there("sub/y")), "1");
  quietly({"mv", url("sub/y"), url("new/")});
  EXPECT_EQ(content_of(there("new/y")), "1");
  quietly({"mv", url("new"), url("newer")});
  EXPECT_EQ(content_of(there("newer/y")), "1");
  quietly({"mv", url("newer/y"), server_.url()});
  EXPECT_EQ(content_of(there("y")), "1");
  expect_failure(run_tool({"mv", url("missing"), url("z")}), 3, "missing");
  expect_failure(run_tool({"mv", url("y"), "/tmp/y"}), 2, "within one server");
  expect_failure(run_tool({"mv", url("y"), "ucx://127.0.0.1:1/y"}), 2, "within one server");
}

TEST_F(StoreCommands, RemoveFilesAndTrees) {
  std::filesystem::create_directories(store_ / "a/b/c");
  for (const std::string name : {"x", "y", "a/1", "a/b/2", "a/b/c/3"}) store_.make(name, "1");
  quietly({"rm", url("x")});
  expect_failure(run_tool({"rm", url("x")}), 3, "\"x\"");
  quietly({"rm", "-f", url("x")});
  expect_failure(run_tool({"rm", url("a")}), 2, "-r");
  const command_result some = run_tool({"rm", url("x"), url("y")});
  EXPECT_EQ(some.code, 11) << some.err;
  EXPECT_FALSE(std::filesystem::exists(there("y")));
  quietly({"rm", "-r", url("a")});
  EXPECT_FALSE(std::filesystem::exists(there("a")));
  const tool_server reading({"--store", (store_ / "").string()});
  store_.make("z", "1");
  expect_failure(run_tool({"rm", reading.url("z")}), 5, "\"z\"");
  EXPECT_TRUE(std::filesystem::exists(there("z")));
}

TEST_F(StoreCommands, RemoveNothingOfAStoreThatIsNamedItself) {
  const auto file = folder_.make("x", "1");
  const tool_server named({"--store", "s=" + (folder_ / "").string(), "--writable"});
  expect_failure(run_tool({"rm", "-r", named.url("s")}), 2, "is a store");
  EXPECT_TRUE(std::filesystem::exists(file));
}

TEST_F(StoreCommands, SayThatADirectoryIsNotEmpty) {
  std::filesystem::create_directories(store_ / "w/odd");
  store_.make("w/x", "1");
  ASSERT_EQ(::mkfifo(there("w/odd/pipe").c_str(), 0600), 0);
  const command_result result = run_tool({"rm", "-r", url("w")});
  EXPECT_EQ(result.code, 11) << result.err;
  EXPECT_THAT(result.err, HasSubstr("\"w/odd\" is not empty"));
  EXPECT_THAT(result.err, HasSubstr("\"w\" is not empty"));
  EXPECT_THAT(result.err, Not(HasSubstr("the name is taken")));
  EXPECT_FALSE(std::filesystem::exists(there("w/x")));
  EXPECT_TRUE(std::filesystem::exists(there("w/odd/pipe")));
}

TEST_F(StoreCommands, MakeDirectories) {
  quietly({"mkdir", url("a/b"), url("c")});
  EXPECT_TRUE(std::filesystem::is_empty(there("a/b")));
  EXPECT_TRUE(std::filesystem::is_empty(there("c")));
  expect_failure(run_tool({"mkdir", url("c")}), 2, "the name is taken");
  quietly({"mkdir", "-p", url("c"), url("d")});
  EXPECT_TRUE(std::filesystem::is_empty(there("d")));
  store_.make("x", "1");
  expect_failure(run_tool({"mkdir", "-p", url("x")}), 2, "the name is taken");
  quietly({"rm", "-r", url("a/b")});
  EXPECT_FALSE(std::filesystem::exists(there("a/b")));
}

TEST_F(StoreCommands, HashWhatIsHereAndThere) {
  const std::string content(3'000'000, 'x');
  store_.make("x", content);
  const std::string path = folder_.make("x", content).string();
  EXPECT_EQ(run_tool({"hash", url("x"), path}).out,
            hash_of(content) + "  " + url("x") + '\n' + hash_of(content) + "  " + path + '\n');
  store_.make("empty", "");
  EXPECT_EQ(run_tool({"hash", url("empty")}).out, hash_of("") + "  " + url("empty") + '\n');
  const std::string chunks = run_tool({"hash", "--chunks", url("x")}).out;
  const std::size_t chunk = 1U << 20U;
  EXPECT_EQ(chunks, hash_of(content.substr(0, chunk)) + "  " + url("x") + "@0\n" +
                        hash_of(content.substr(0, chunk)) + "  " + url("x") + "@1048576\n" +
                        hash_of(content.substr(2 * chunk)) + "  " + url("x") + "@2097152\n" +
                        hash_of(content) + "  " + url("x") + '\n');
}

TEST_F(StoreCommands, HashForPrograms) {
  const std::string content = "content";
  const std::string path = folder_.make("x", content).string();
  const auto all =
      nlohmann::ordered_json::parse(run_tool({"hash", "--json", "--chunks", path}).out);
  EXPECT_EQ(all, nlohmann::ordered_json::array({{{"location", path},
                                                 {"size", 7},
                                                 {"xxh3_128", hash_of(content)},
                                                 {"place", path},
                                                 {"chunk_size", 1U << 20U},
                                                 {"chunks", {hash_of(content)}}}}));
}

TEST_F(StoreCommands, HashMemoryByReadingIt) {
  std::string memory(2'500'000, 'm');
  ucx_server owner;
  const publication shown = owner.publish("m", std::as_bytes(std::span(memory)));
  EXPECT_EQ(run_tool({"hash", shown.url()}).out, hash_of(memory) + "  " + shown.url() + '\n');
}

TEST_F(StoreCommands, HashTellsOfWhatIsNotThere) {
  store_.make("x", "1");
  expect_failure(run_tool({"hash", url("y")}), 3, "y");
  expect_failure(run_tool({"hash", (folder_ / "y").string()}), 3, "y");
  expect_failure(run_tool({"hash", server_.url()}), 2, server_.url());
  const command_result some = run_tool({"hash", url("y"), url("x")});
  EXPECT_EQ(some.code, 11);
  EXPECT_EQ(some.out, hash_of("1") + "  " + url("x") + '\n');
  EXPECT_THAT(some.err, HasSubstr("1 of 2 could not be hashed"));
}

}  // namespace
}  // namespace ucx::test
