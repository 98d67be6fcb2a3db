// `ucxio serve --gpu-copy`, with a driver whose devices are none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "support/files/temporary_directory.hpp"
#include "support/process/command.hpp"
#include "support/tool/tool.hpp"

namespace ucx::test {
namespace {

using ::testing::HasSubstr;

class ServeGpuCopies : public ::testing::Test {
 protected:
  void use_driver(const char* path) { ::setenv("UCXIO_CUDA_DRIVER", path, 1); }
  ~ServeGpuCopies() override { ::unsetenv("UCXIO_CUDA_DRIVER"); }

  std::string here(const std::string& name) const { return (directory_ / name).string(); }
  static std::string read(const tool_server& from, const std::string& name) {
    const command_result shown = run_tool({"cat", from.url(name)});
    EXPECT_EQ(shown.code, 0) << shown.err;
    return shown.out;
  }
  /// Expects that `ucxio cp` went well, quietly.
  static void expect_copied(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "cp");
    const command_result copied = run_tool(arguments);
    EXPECT_EQ(copied.code, 0) << copied.err;
    EXPECT_EQ(copied.err, "");
  }
  /// Writes `text` to "tensor" by `ucxio put`.
  static command_result put(const std::string& text, const tool_server& to) {
    return command("/bin/bash", {"-c", "printf %s \"$2\" | exec \"$0\" put \"$1\"", tool_program(),
                                 to.url("tensor"), text})
        .finish();
  }

  temporary_directory directory_;
  const std::string text_ = directory_.make("text", std::string(9'000'003, 'x').append("\n"));
  const std::string empty_ = directory_.make("empty", "");
};

TEST_F(ServeGpuCopies, GivesWhatIsInTheFiles) {
  use_driver(READY_CUDA);
  tool_server server({"--gpu-copy", "tensor=" + text_, "--gpu-copy", empty_, "--gpu", "1"});
  EXPECT_EQ(run_tool({"cat", server.url("tensor")}).out, content_of(text_));
  EXPECT_EQ(run_tool({"cat", server.url("empty")}).code, 0);
  EXPECT_EQ(run_tool({"ls", "--names", server.url()}).out, "empty\ntensor\n");
  const std::string fetched = here("fetched");
  EXPECT_EQ(run_tool({"cp", server.url("tensor"), fetched}).code, 0);
  EXPECT_EQ(content_of(fetched), content_of(text_));
}

TEST_F(ServeGpuCopies, CopiesWhatWasThereThen) {
  use_driver(READY_CUDA);
  const std::string before = content_of(text_);
  tool_server server({"--gpu-copy", text_});
  directory_.make("text", "another");
  EXPECT_EQ(run_tool({"cat", server.url("text")}).out, before);
}

TEST_F(ServeGpuCopies, MayBeWrittenWhereThatIsAllowed) {
  use_driver(READY_CUDA);
  tool_server server({"--gpu-copy", "tensor=" + text_, "--writable"});
  const std::string shorter = directory_.make("shorter", "some text");
  const command_result copied = run_tool({"cp", shorter, server.url("tensor")});
  EXPECT_EQ(copied.code, 0) << copied.err;
  EXPECT_EQ(run_tool({"cat", server.url("tensor"), "--length", "10"}).out, "some textx");
  tool_server sealed({"--gpu-copy", "tensor=" + text_});
  EXPECT_EQ(run_tool({"cp", shorter, sealed.url("tensor")}).code, 5);
}

TEST_F(ServeGpuCopies, AreListedWithTheirDevice) {
  use_driver(READY_CUDA);
  tool_server server({"--gpu-copy", "tensor=" + text_, "--gpu", "1", "text=" + text_});
  const std::string listed = run_tool({"ls", "-l", server.url()}).out;
  EXPECT_THAT(listed, HasSubstr("  cuda:1  "));
  EXPECT_THAT(listed, HasSubstr("  host  "));
  EXPECT_THAT(run_tool({"stat", server.url("tensor")}).out, HasSubstr("memory      cuda:1\n"));
  EXPECT_THAT(run_tool({"info", server.url("tensor")}).out, HasSubstr("memory      cuda:1\n"));
  const auto described =
      nlohmann::json::parse(run_tool({"stat", "--json", server.url("tensor")}).out);
  EXPECT_EQ(described["memory"], "cuda");
  EXPECT_EQ(described["device"], 1);
  const auto all = nlohmann::json::parse(run_tool({"ls", "--json", server.url()}).out);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0]["device"], 1);
  EXPECT_TRUE(all[1]["device"].is_null());
}

TEST_F(ServeGpuCopies, AreHashed) {
  use_driver(READY_CUDA);
  tool_server server({"--gpu-copy", "tensor=" + text_, "--gpu-copy", empty_});
  for (const auto& [name, path] : {std::pair("tensor", text_), std::pair("empty", empty_)}) {
    const command_result hashed = run_tool({"hash", "--chunks", "--json", server.url(name), path});
    EXPECT_EQ(hashed.code, 0) << hashed.err;
    const auto both = nlohmann::json::parse(hashed.out);
    ASSERT_EQ(both.size(), 2U);
    EXPECT_EQ(both.at(0).at("xxh3_128"), both.at(1).at("xxh3_128"));
    EXPECT_EQ(both.at(0).at("chunks"), both.at(1).at("chunks"));
  }
  expect_failure(run_tool({"hash", server.url("nothing")}), 3, "nothing");
}

TEST_F(ServeGpuCopies, AreMeasured) {
  use_driver(READY_CUDA);
  tool_server server({"--gpu-copy", "tensor=" + text_, "--writable"});
  const command_result measured = run_tool(
      {"bench", server.url("tensor"), "--seconds", "0.01", "--size", "1M", "--write", "--json"});
  EXPECT_EQ(measured.code, 0) << measured.err;
  EXPECT_FALSE(nlohmann::json::parse(measured.out).empty());
  EXPECT_TRUE(read(server, "tensor") == content_of(text_)) << "what is there is written again";
  tool_server sealed({"--gpu-copy", "tensor=" + text_});
  expect_failure(
      run_tool({"bench", sealed.url("tensor"), "--seconds", "0.01", "--write", "--json"}), 5,
      "this access is not allowed");
}

TEST_F(ServeGpuCopies, ComeWithoutChecksumsAndAreComparedAsAWhole) {
  use_driver(READY_CUDA);
  tool_server server({"--gpu-copy", "tensor=" + text_, "--writable", "file=" + text_});
  const command_result shown = run_tool({"cat", "--verify", server.url("tensor")});
  EXPECT_EQ(shown.code, 0);
  EXPECT_TRUE(shown.out == content_of(text_));
  EXPECT_THAT(shown.err, HasSubstr("memory of a device comes without checksums"));
  EXPECT_EQ(run_tool({"cat", "--verify", server.url("file")}).err, "");
  expect_failure(run_tool({"cat", "--verify", "--offset", "9M", server.url("tensor")}), 2,
                 "behind its end");
  expect_copied({"--verify", server.url("tensor"), here("fetched")});
  EXPECT_TRUE(content_of(here("fetched")) == content_of(text_));
  // The other way, and all of a server.
  const std::string other = directory_.make("other", std::string(9'000'004, 'y'));
  expect_copied({"--verify", other, server.url("tensor")});
  std::filesystem::create_directory(here("all"));
  expect_copied({"-r", "--verify", server.url(), here("all")});
  EXPECT_TRUE(content_of(here("all/tensor")) == content_of(other));
  EXPECT_TRUE(content_of(here("all/file")) == content_of(text_));
}

TEST_F(ServeGpuCopies, AreCopiedWithOtherSmallOnes) {
  use_driver(READY_CUDA);
  const std::string small = directory_.make("small", "some text");
  tool_server server({"--gpu-copy", "a=" + small, "--gpu-copy", "b=" + empty_, "c=" + small});
  std::filesystem::create_directory(here("all"));
  expect_copied({"-r", server.url(), here("all")});
  EXPECT_EQ(content_of(here("all/a")), "some text");
  EXPECT_EQ(content_of(here("all/b")), "");
  EXPECT_EQ(content_of(here("all/c")), "some text");
}

TEST_F(ServeGpuCopies, TakeTheStandardInputAndNoMoreThanTheyHold) {
  use_driver(READY_CUDA);
  const std::string small = directory_.make("small", "some text");
  tool_server server({"--gpu-copy", "tensor=" + small, "--writable"});
  EXPECT_EQ(put("other", server).code, 0);
  EXPECT_EQ(read(server, "tensor"), "othertext");
  expect_failure(put("longer than it", server), 12, "do not fit into 9");
  expect_failure(run_tool({"cp", text_, server.url("tensor")}), 12, "do not fit into 9");
  tool_server sealed({"--gpu-copy", "tensor=" + small});
  expect_failure(put("other", sealed), 5, "this access is not allowed");
  EXPECT_EQ(read(sealed, "tensor"), "some text");
}

TEST_F(ServeGpuCopies, AreGoneOnWithWhereACopyHasEnded) {
  use_driver(READY_CUDA);
  tool_server server({"--gpu-copy", "tensor=" + text_, "--writable"});
  directory_.make(".fetched.ucxio-part", content_of(text_).substr(0, 5'000'000));
  expect_copied({"--resume", server.url("tensor"), here("fetched")});
  EXPECT_TRUE(content_of(here("fetched")) == content_of(text_));
  // Memory has no name beside it; but what is there already need not be copied.
  expect_copied({"--resume", text_, server.url("tensor")});
  const std::string other = directory_.make("other", std::string(9'000'004, 'y'));
  expect_failure(run_tool({"cp", "--resume", other, server.url("tensor")}), 2,
                 "no file of a store");
  EXPECT_TRUE(read(server, "tensor") == content_of(text_));
}

TEST_F(ServeGpuCopies, GoFromServerToServer) {
  use_driver(READY_CUDA);
  tool_server server({"--gpu-copy", "tensor=" + text_});
  std::filesystem::create_directory(here("store"));
  const std::string other = directory_.make("other", std::string(9'000'004, 'y'));
  tool_server fetcher({"--store", here("store") + '/', "--writable", "--fetch-from", "127.0.0.1",
                       "--gpu-copy", "mine=" + other});
  expect_copied({"--direct", "--verify", server.url("tensor"), fetcher.url("copy")});
  EXPECT_TRUE(content_of(here("store/copy")) == content_of(text_));
  expect_copied({"--direct", "--verify", server.url("tensor"), fetcher.url("mine")});
  EXPECT_TRUE(read(fetcher, "mine") == content_of(text_));
  tool_server refusing({"--gpu-copy", "mine=" + other, "--writable", "--agent"});
  expect_failure(run_tool({"cp", "--direct", server.url("tensor"), refusing.url("mine")}), 5,
                 "--fetch-from");
  // Without --direct, through the one who asks.
  expect_copied({server.url("tensor"), refusing.url("mine")});
  EXPECT_TRUE(read(refusing, "mine") == content_of(text_));
}

TEST_F(ServeGpuCopies, AreCompressedOnTheWay) {
  use_driver(READY_CUDA);
  const std::string other = directory_.make("other", std::string(9'000'004, 'y'));
  tool_server server({"--gpu-copy", "tensor=" + text_, "--writable", "--agent"});
  expect_copied({"--compress", "lz4", "--verify", server.url("tensor"), here("fetched")});
  EXPECT_TRUE(content_of(here("fetched")) == content_of(text_));
  expect_copied({"--compress", "lz4", "--verify", other, server.url("tensor")});
  EXPECT_TRUE(read(server, "tensor") == content_of(other));
}

TEST_F(ServeGpuCopies, SaysWhatItCanNotDo) {
  use_driver("/nowhere/libcuda.so");
  expect_failure(run_tool({"serve", "--gpu-copy", text_}), 1, "--gpu-copy: ");
  use_driver(READY_CUDA);
  expect_failure(run_tool({"serve", "--gpu-copy", text_, "--gpu", "2"}), 1, "--gpu-copy: ");
  expect_failure(run_tool({"serve", "--gpu-copy", (directory_ / "").string()}), 2,
                 "it is no regular file");
  expect_failure(run_tool({"serve", "--gpu-copy", (directory_ / "nothing").string()}), 3,
                 "cannot open it");
  EXPECT_EQ(run_tool({"serve", "--gpu", "1"}).code, 2);  // of which copy?
}

}  // namespace
}  // namespace ucx::test
