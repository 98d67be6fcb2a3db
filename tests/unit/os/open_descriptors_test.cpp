#include "os/open_descriptors.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <set>
#include <string>

#include "base/owned_descriptor.hpp"
#include "support/replaced/counted_calls.hpp"

namespace ucx::detail {
namespace {

/// As the system lists them, less the one that this takes.
std::set<int> listed() {
  std::set<int> found;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int number = std::stoi(each.path().filename().string());
    if (::fcntl(number, F_GETFD) >= 0) found.insert(number);
  }
  std::erase_if(found, [](int number) { return ::fcntl(number, F_GETFD) < 0; });
  return found;
}

/// Some of them far apart.
std::deque<owned_descriptor> taken() {
  std::deque<owned_descriptor> made;
  for (const int least : {0, 0, 0, 255, 256, 500}) {
    made.emplace_back(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, least));
    EXPECT_TRUE(made.back());
  }
  return made;
}

constexpr std::size_t limit = 4096;

TEST(OpenDescriptors, AreFoundByAskingForEach) {
  const std::deque<owned_descriptor> some = taken();
  std::set<int> found;
  EXPECT_TRUE(each_open(0, limit, [&](int number) { found.insert(number); }));
  EXPECT_EQ(found, listed());
  found.clear();
  EXPECT_TRUE(each_open(256, 257, [&](int number) { found.insert(number); }));
  EXPECT_EQ(found, (std::set<int>{256}));
}

TEST(OpenDescriptors, AreCountedExactlyWhereTheyMayRunShort) {
  const std::deque<owned_descriptor> some = taken();
  const std::size_t open = listed().size();
  for (const std::size_t size : {std::size_t{0}, std::size_t{1024}, limit, 2 * limit}) {
    const descriptor_count count = count_by_asking(limit, size);
    EXPECT_EQ(count.open, open) << size;
    EXPECT_EQ(count.left(), limit - open) << size;
  }
  EXPECT_EQ(count_by_asking(256, 1024).open, open - 2) << "two are beyond that limit";
}

TEST(OpenDescriptors, AreNotCountedWhereThereAreEnough) {
  constexpr std::size_t high = std::size_t{1} << 20U;
  std::uint64_t before = test::poll_calls();
  EXPECT_EQ(count_by_asking(high, 1024).left(), high - 1024);
  EXPECT_EQ(test::poll_calls(), before);
  before = test::poll_calls();
  for (const std::size_t size : {std::size_t{0}, high}) {
    EXPECT_GE(count_by_asking(high, size).left(), most_counted);
  }
  EXPECT_LE(test::poll_calls() - before, 2 * (most_counted / 256 + 16));
}

TEST(OpenDescriptors, AreAllInTheTableOfTheSystem) {
  const std::deque<owned_descriptor> some = taken();
  EXPECT_GT(size_of_table(), 500U);
  EXPECT_LT(size_of_table(), std::size_t{1} << 20U);
}

TEST(OpenDescriptors, AreCountedAsTheSystemCountsThem) {
  const descriptor_count count = count_descriptors();
  EXPECT_GT(count.open, 0U);
  const owned_descriptor one_more(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
  EXPECT_GE(count.left(), count_descriptors().left());
}

}  // namespace
}  // namespace ucx::detail
