// The directories of a server's stores, of one that names more than anybody has.
#include "copying/server_directories.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ucx::test {
namespace {

using tool::found_entry;
using tool::most_directories;

entry directory_named(std::string name) {
  entry made;
  made.name = std::move(name);
  made.type = entry_type::directory;
  return made;
}

TEST(ServerDirectories, AreVisitedOnceEach) {
  std::vector<std::string> visited;
  const auto read = [&](const std::string& name, bool, const found_entry& found) {
    visited.push_back(name);
    if (name == "a") {
      EXPECT_TRUE(found(directory_named("a/b")));
    }
    EXPECT_TRUE(found(directory_named("a")));
    EXPECT_TRUE(found({.name = "a/file"}));
  };
  EXPECT_TRUE(tool::visit_directories({"a"}, read));
  EXPECT_EQ(visited.size(), 3U);
  EXPECT_EQ(std::set<std::string>(visited.begin(), visited.end()),
            (std::set<std::string>{"", "a", "a/b"}));
}

TEST(ServerDirectories, OfAServerThatNamesEverMoreAreNotAllKept) {
  std::size_t visited = 0;
  std::size_t kept = 0;
  std::size_t next = 0;
  const auto read = [&](const std::string&, bool, const found_entry& found) {
    ++visited;
    for (int i = 0; i < 100 && found(directory_named(std::to_string(++next))); ++i) ++kept;
  };
  EXPECT_FALSE(tool::visit_directories({}, read));
  EXPECT_EQ(visited, most_directories);
  EXPECT_EQ(kept, most_directories - 1);
}

TEST(ServerDirectories, ThatFilesLieInAreVisitedHoweverMany) {
  std::set<std::string> guessed;
  for (std::size_t i = 0; i < most_directories + 10; ++i) guessed.insert(std::to_string(i));
  std::size_t visited = 0;
  const auto read = [&](const std::string&, bool, const found_entry& found) {
    ++visited;
    found(directory_named("0"));
  };
  EXPECT_TRUE(tool::visit_directories(guessed, read));
  EXPECT_EQ(visited, guessed.size() + 1);
}

}  // namespace
}  // namespace ucx::test
