// `ucxio serve --gpu-copy`, with a driver whose devices are none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "support/temporary_directory.hpp"
#include "support/tool.hpp"

namespace ucx::test {
namespace {

using ::testing::HasSubstr;

class ServeGpuCopies : public ::testing::Test {
 protected:
  void use_driver(const char* path) { ::setenv("UCXIO_CUDA_DRIVER", path, 1); }
  ~ServeGpuCopies() override { ::unsetenv("UCXIO_CUDA_DRIVER"); }

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
  const std::string fetched = (directory_ / "fetched").string();
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
  EXPECT_THAT(run_tool({"info", server.url("tensor")}).out, HasSubstr("memory    cuda:1\n"));
  const auto described =
      nlohmann::json::parse(run_tool({"stat", "--json", server.url("tensor")}).out);
  EXPECT_EQ(described["memory"], "cuda");
  EXPECT_EQ(described["device"], 1);
  const auto all = nlohmann::json::parse(run_tool({"ls", "--json", server.url()}).out);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0]["device"], 1);
  EXPECT_TRUE(all[1]["device"].is_null());
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
