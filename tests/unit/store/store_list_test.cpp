// Lists of servers that have several stores, over TCP.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "support/files/temporary_directory.hpp"
#include "support/replaced/counted_calls.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/client.hpp"
#include "ucx/publication.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

class StoreList : public testing::Test {
 protected:
  /// Makes files of these names, and a store of them.
  void publish(const std::string& prefix, const std::vector<std::string>& names,
               const std::string& content = {}) {
    const temporary_directory& directory = directories_.emplace_back();
    for (const std::string& each : names) {
      std::filesystem::create_directories((directory / each).parent_path());
      directory.make(each, content);
      if (!content.empty()) continue;
      expected_.push_back(prefix.empty() ? each : prefix + '/' + each);
    }
    stores_.push_back(served_.publish_store(directory / "", {.prefix = prefix}));
  }
  std::vector<std::string> listed() {
    std::vector<std::string> names;
    for (const entry& each : client_.list()) names.push_back(each.name);
    return names;
  }
  std::vector<std::string> expected() {
    std::sort(expected_.begin(), expected_.end());
    return expected_;
  }

  std::deque<temporary_directory> directories_;
  ucx_server served_;
  std::deque<publication> stores_;
  client client_{served_.url()};
  std::vector<std::string> expected_;
};

std::vector<std::string> many(std::size_t count) {
  std::vector<std::string> made;
  for (std::size_t i = 0; i < count; ++i)
    made.push_back(std::to_string(1000 + i) + std::string(200, 'x'));
  return made;
}

// Each page is of one store or two: the others are not read for it.
TEST_F(StoreList, ReadsEachStoreOnceAndNotForEachPage) {
  constexpr std::size_t stores = 40;
  constexpr std::size_t names = 100;
  for (std::size_t i = 0; i < stores; ++i) publish("s" + std::to_string(10 + i), many(names));
  const std::uint64_t before = readdir_calls();
  EXPECT_EQ(listed(), expected());
  EXPECT_LE(readdir_calls() - before, 3 * stores * names);
}

TEST_F(StoreList, HasTheNamesOfStoresWithinStoresInOrder) {
  publish("", many(700));
  publish("1300", many(300));
  publish("1300/1100", many(300));
  publish("1300-", {"a", "b"});
  publish("z/y/x", {"a"});
  publish("empty", {});
  std::vector<std::byte> memory(10);
  const publication first = served_.publish("1000", std::span<const std::byte>(memory));
  const publication within = served_.publish("1300/m", std::span<const std::byte>(memory));
  const publication last = served_.publish("zz", std::span<const std::byte>(memory));
  for (const char* const each : {"1000", "1300/m", "zz"}) expected_.emplace_back(each);
  EXPECT_EQ(listed(), expected());
}

// What the store above has at that path nobody can have.
TEST_F(StoreList, TellsOfAFileOfTheStoreThatHasIt) {
  publish("", {"in/file"}, "outer");
  publish("in", {"file"}, "in");
  const std::vector<entry> all = client_.list();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all.front().name, "in/file");
  EXPECT_EQ(all.front().size, 2U);
}

}  // namespace
}  // namespace ucx::test
