// What `ucxio serve` tells people: lines that can be pasted into a shell elsewhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/process/command.hpp"
#include "support/tool/copy_place.hpp"
#include "support/tool/tool.hpp"

namespace ucx::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// A server that says what to type elsewhere, and a directory where that is typed.
class ServeText : public ::testing::Test {
 protected:
  ServeText() {
    std::filesystem::create_directories(folder_ / "store");
    std::filesystem::create_directories(folder_ / "elsewhere");
  }

  /// Starts it, and returns what is to be typed, without "ucxio: elsewhere: ".
  std::vector<std::string> serve(std::vector<std::string> line) {
    line.insert(line.begin(), "serve");
    server_ = std::make_unique<command>(tool_program(), line, command::output::pipe);
    for (std::string next = server_->read(1); !next.empty() && next != "\n";
         next = server_->read(1)) {
      url_ += next;
    }
    EXPECT_TRUE(soon([&] { return server_->errors().ends_with('\n'); }));  // it is one text
    std::vector<std::string> all;
    std::istringstream lines(server_->errors());
    const std::string begin = "ucxio: elsewhere: ";
    for (std::string each; std::getline(lines, each);) {
      if (each.starts_with(begin)) all.push_back(each.substr(begin.size()));
    }
    return all;
  }
  std::string said() const { return server_->errors(); }
  /// Types a line elsewhere, where `ucxio` is the tool.
  command_result type(const std::string& line) const {
    const std::string directory = std::filesystem::path(tool_program()).parent_path().string();
    return command("/bin/bash", {"-c", "PATH=$0:$PATH; cd \"$1\"; " + line, directory,
                                 (folder_ / "elsewhere").string()})
        .finish();
  }
  std::string elsewhere(const std::string& name) const {
    return content_of(folder_ / ("elsewhere/" + name));
  }

  const temporary_directory folder_;
  std::string url_;
  std::unique_ptr<command> server_;
};

TEST_F(ServeText, TellsOfAFile) {
  const auto lines = serve({"a b=" + folder_.make("x", "12345").string()});
  EXPECT_THAT(said(), StartsWith("ucxio: serving a b (5 bytes) as " + url_ + "/a%20b\n"));
  EXPECT_THAT(lines, ElementsAre("ucxio cp " + url_ + "/a%20b ."));
  EXPECT_EQ(type(lines.at(0)).err, "");
  EXPECT_EQ(elsewhere("a b"), "12345");
  server_->send_signal(SIGTERM);
  EXPECT_EQ(server_->finish().code, 0);
}

/// Whatever shells make of it otherwise.
TEST_F(ServeText, IsQuotedForAShell) {
  const std::string name = "it's $HOME; echo & (all) *~!";
  const auto lines = serve({name + "=" + folder_.make("x", "12345").string()});
  ASSERT_EQ(lines.size(), 1U);
  const command_result typed = type(lines[0]);
  EXPECT_EQ(typed.code, 0) << lines[0] << typed.err;
  EXPECT_EQ(typed.out + typed.err, "");
  EXPECT_EQ(elsewhere(name), "12345") << lines[0];
}

TEST_F(ServeText, TellsOfAStore) {
  folder_.make("store/x", "1");
  const auto lines = serve({"--store", "s=" + (folder_ / "store").string()});
  EXPECT_THAT(said(), HasSubstr("serving a directory as " + url_ + "/s\n"));
  EXPECT_THAT(lines, ElementsAre("ucxio cp -r " + url_ + "/s ."));
  EXPECT_EQ(type(lines.at(0)).err, "");
  EXPECT_EQ(elsewhere("s/x"), "1");
}

/// What is there is a link, a directory, a pipe, and a name that is no UTF-8: no file to serve.
TEST_F(ServeText, TellsOfAStoreThatServesNothing) {
  std::filesystem::create_directories(folder_ / "store/empty");
  std::filesystem::create_symlink("/etc/hostname", folder_ / "store/link");
  EXPECT_EQ(::mkfifo((folder_ / "store/fifo").c_str(), 0600), 0);
  folder_.make("store/bad\xff", "x");
  folder_.make("full", "");
  const std::string store = (folder_ / "store").string();
  const std::string elsewhere = (folder_ / "elsewhere").string();
  const auto note_of = [](const std::string& directory) {
    return "ucxio: note: " + directory + ": nothing in it is served now: ";
  };
  for (const std::string& given : {store, "s=" + store}) {
    SCOPED_TRACE(given);
    serve({"--store", given, "--store", "other=" + (folder_ / "").string(), "--store",
           "last=" + elsewhere});
    EXPECT_TRUE(soon([&] { return said().find(note_of(elsewhere)) != std::string::npos; }));
    EXPECT_THAT(said(), HasSubstr(note_of(store)));
    EXPECT_THAT(said(), Not(HasSubstr(note_of((folder_ / "").string())))) << "that one has a file";
    url_.clear();
  }
  folder_.make("store/empty/file", "");
  serve({"--store", store, "--store", "last=" + elsewhere});
  EXPECT_TRUE(soon([&] { return said().find(note_of(elsewhere)) != std::string::npos; }));
  EXPECT_THAT(said(), Not(HasSubstr(note_of(store))));
}

TEST_F(ServeText, IsNotSaidWhereTheServerIsToBeQuiet) {
  command quiet(tool_program(), {"serve", "--quiet", "--store", (folder_ / "store").string()},
                command::output::pipe);
  while (!url_.ends_with('\n')) {
    const std::string next = quiet.read(1);
    ASSERT_FALSE(next.empty()) << quiet.errors();
    url_ += next;
  }
  quiet.send_signal(SIGTERM);
  const command_result result = quiet.finish();
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "");
}

TEST_F(ServeText, TellsHowToFillAStore) {
  for (const bool has_prefix : {true, false}) {
    const std::string store = (has_prefix ? "s=" : "") + (folder_ / "store").string();
    const auto lines = serve({"--writable", "--store", store});
    EXPECT_THAT(said(), HasSubstr("serving a writable directory as "));
    const std::string place = url_ + (has_prefix ? "/s" : "");
    ASSERT_THAT(lines,
                ElementsAre("ucxio cp -r " + place + " .", "ucxio cp -r PATH " + place + "/"));
    folder_.make("elsewhere/PATH", "filled");
    EXPECT_EQ(type(lines[1]).err, "");
    EXPECT_EQ(content_of(folder_ / "store/PATH"), "filled");
    std::filesystem::remove(folder_ / "store/PATH");
    url_.clear();
  }
}

TEST_F(ServeText, TellsOfPipes) {
  const std::vector<std::string> by_file{"--pipes", "--ucx", "--address-file",
                                         (folder_ / "address").string()};
  for (const std::vector<std::string>& line : {std::vector<std::string>{"--pipes"}, by_file}) {
    const auto lines = serve(line);
    EXPECT_THAT(said(), StartsWith("ucxio: serving pipes of any name\n"));
    ASSERT_THAT(lines, ElementsAre("ucxio pipe receive " + url_ + "/pipe",
                                   "ucxio pipe send " + url_ + "/pipe"));
    EXPECT_EQ(type(lines[0] + " & echo over | " + lines[1] + "; wait").out, "over\n");
    url_.clear();
  }
}

TEST_F(ServeText, TellsThatNothingIsPublished) {
  EXPECT_THAT(serve({}), ElementsAre());
  EXPECT_EQ(said(), "ucxio: serving, but nothing is published\n");
}

}  // namespace
}  // namespace ucx::test
