// Directories served by the tool, and what the others make of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "support/files/temporary_directory.hpp"
#include "support/process/command.hpp"
#include "support/tool/tool.hpp"
#include "ucx/error.hpp"
#include "ucx/fstream.hpp"

namespace ucx::test {
namespace {

using ::testing::HasSubstr;

TEST(ServeStore, ServesADirectory) {
  const temporary_directory folder;
  std::filesystem::create_directories(folder / "sub");
  folder.make("sub/notes.txt", "one\ntwo\n");
  folder.make("other", "x");
  tool_server server(
      {"--store", "data=" + (folder / "").string(), "--store", (folder / "sub").string()});
  EXPECT_EQ(run_tool({"ls", "--names", server.url()}).out,
            "data/other\ndata/sub/notes.txt\nnotes.txt\n");
  EXPECT_EQ(run_tool({"cat", server.url() + "/data/sub/notes.txt"}).out, "one\ntwo\n");
  const auto listed = run_tool({"ls", server.url() + "/data"}).out;
  EXPECT_THAT(listed, HasSubstr("directory"));
  EXPECT_THAT(listed, HasSubstr("data/sub\n"));
  EXPECT_THAT(run_tool({"stat", "--json", server.url() + "/data/other"}).out,
              HasSubstr("\"file\""));
  EXPECT_NE(run_tool({"cat", server.url() + "/data/../other"}).code, 0);
}

TEST(ServeStore, SaysThatItsDirectoryWasRemoved) {
  const temporary_directory folder;
  const auto at = folder / "x";
  std::filesystem::create_directory(at);
  const tool_server server({"--store", "v=" + at.string(), "--writable"});
  EXPECT_EQ(run_tool({"ls", server.url("v")}).code, 0);
  std::filesystem::remove_all(at);
  for (const bool is_made_anew : {false, true}) {
    if (is_made_anew) std::filesystem::create_directory(at);
    const std::string why = make_error_code(errc::stale_store).message();
    for (const char* command : {"ls", "stat", "cat"}) {
      const command_result shown = run_tool({command, server.url("v")});
      EXPECT_NE(shown.code, 0) << command;
      EXPECT_THAT(shown.err, HasSubstr(why)) << command;
      const command_result opened = run_tool({command, server.url("v/name")});
      EXPECT_NE(opened.code, 0) << command;
      EXPECT_THAT(opened.err, HasSubstr(why)) << command;
    }
    EXPECT_THAT(run_tool({"ls", server.url()}).err, HasSubstr(why));
  }
}

TEST(ServeStore, LetsClientsWriteWhereItWasToldTo) {
  const temporary_directory folder;
  {
    tool_server server({"--store", (folder / "").string(), "--writable", "--quota", "1K"});
    ofstream out(server.url() + "/new");
    out << "text";
    out.close();
    EXPECT_TRUE(out) << out.error_message();
    ofstream large(server.url() + "/large");
    large << std::string(2000, 'x');
    large.close();
    EXPECT_FALSE(large);
  }
  EXPECT_EQ(content_of(folder / "new"), "text");
  tool_server server({"--store", (folder / "").string()});
  ofstream out(server.url() + "/new");
  EXPECT_FALSE(out);
}

TEST(ServeStore, LetsSoManyFilesBeOpenAsItWasTold) {
  const temporary_directory folder;
  folder.make("one", "text");
  tool_server server({"--store", (folder / "").string(), "--memory-store", "memory=1K",
                      "--writable", "--max-writers", "1", "--max-open-files", "3",
                      "--max-open-files-per-client", "2"});
  for (const std::string prefix : {"/", "/memory/"}) {
    const ofstream first(server.url() + prefix + "first");
    EXPECT_TRUE(first) << first.error_message();
    const ofstream second(server.url() + prefix + "second");
    EXPECT_EQ(second.error(), errc::too_many_writers);
  }
  const ifstream reader(server.url() + "/one");
  const ifstream another(server.url() + "/one");
  const ifstream third(server.url() + "/one");
  EXPECT_EQ(third.error(), errc::too_many_client_files);
  EXPECT_NE(run_tool({"serve", "--max-writers", "0", "--store", (folder / "").string()}).code, 0);
}

TEST(ServeStore, KeepsFilesInMemory) {
  tool_server server({"--memory-store", "scratch=64K", "--memory-store", "1K"});
  ofstream(server.url() + "/scratch/a/new") << "text";
  EXPECT_EQ(run_tool({"cat", server.url() + "/scratch/a/new"}).out, "text");
  ofstream large(server.url() + "/large");
  large << std::string(2000, 'x');
  large.close();
  EXPECT_EQ(large.error(), errc::no_space);
  for (const std::string size : {"scratch=", "lots", "-1", "1e9", "0x10", ""}) {
    const auto refused = run_tool({"serve", "--memory-store", size});
    EXPECT_EQ(refused.code, 2) << size;
    EXPECT_THAT(refused.err, HasSubstr("size")) << size;
  }
  EXPECT_NE(run_tool({"serve", "--memory-store", "900000g"}).code, 0);
}

TEST(ServeStore, TellsWhichDirectoryItCanNotServe) {
  const temporary_directory folder;
  const auto refused = run_tool({"serve", "--store", (folder / "missing").string()});
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.err, HasSubstr("missing"));
}

}  // namespace
}  // namespace ucx::test
