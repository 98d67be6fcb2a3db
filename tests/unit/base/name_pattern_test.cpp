#include "base/name_pattern.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>

namespace ucx::detail {
namespace {

bool matches(std::string_view pattern, std::string_view name) {
  const auto parsed = name_pattern::parse(pattern);
  EXPECT_TRUE(parsed) << pattern;
  return parsed && parsed->matches(name);
}

TEST(NamePattern, MatchesWholeNames) {
  EXPECT_TRUE(matches("a/b", "a/b"));
  EXPECT_FALSE(matches("a/b", "a/bc"));
  EXPECT_FALSE(matches("a/b", "a/"));
  EXPECT_TRUE(matches("a?c", "abc"));
  EXPECT_FALSE(matches("a?c", "a/c"));
  EXPECT_TRUE(matches("", ""));
  EXPECT_FALSE(matches("", "a"));
}

TEST(NamePattern, RunsStayWithinADirectory) {
  EXPECT_TRUE(matches("*.txt", "a.txt"));
  EXPECT_TRUE(matches("*.txt", ".txt"));
  EXPECT_FALSE(matches("*.txt", "a/b.txt"));
  EXPECT_TRUE(matches("a/*/c", "a/b/c"));
  EXPECT_FALSE(matches("a/*/c", "a/b/b/c"));
  EXPECT_TRUE(matches("*a*a", "aaa"));
}

TEST(NamePattern, DeepRunsCrossDirectories) {
  EXPECT_TRUE(matches("**", ""));
  EXPECT_TRUE(matches("**", "a/b/c"));
  EXPECT_TRUE(matches("a/**", "a/b/c"));
  EXPECT_FALSE(matches("a/**", "a"));
  EXPECT_FALSE(matches("a/**", "ab/c"));
  EXPECT_TRUE(matches("**.txt", "a/b.txt"));
  EXPECT_TRUE(matches("**/*.txt", "a/b/c.txt"));
  EXPECT_FALSE(matches("**/x/*.txt", "a/x/b/c.txt"));
}

TEST(NamePattern, BackslashesTakeTheMeaning) {
  EXPECT_TRUE(matches("\\*", "*"));
  EXPECT_FALSE(matches("\\*", "a"));
  EXPECT_TRUE(matches("\\?\\\\", "?\\"));
  EXPECT_FALSE(name_pattern::parse("a\\"));
}

TEST(NamePattern, KnowsWhatMayLieBelow) {
  const auto below = [](std::string_view pattern, std::string_view directory) {
    return name_pattern::parse(pattern)->matches_below(directory);
  };
  EXPECT_TRUE(below("a/b/c", "a/"));
  EXPECT_TRUE(below("a/b/c", ""));
  EXPECT_FALSE(below("a/b/c", "b/"));
  EXPECT_FALSE(below("*", "a/"));
  EXPECT_TRUE(below("*/x", "a/"));
  EXPECT_TRUE(below("**.txt", "a/b/"));
  const auto all_below = [](std::string_view pattern, std::string_view directory) {
    return name_pattern::parse(pattern)->matches_all_below(directory);
  };
  EXPECT_TRUE(all_below("a/**", "a/"));
  EXPECT_TRUE(all_below("**", ""));
  EXPECT_FALSE(all_below("a/*", "a/"));
  EXPECT_FALSE(all_below("a/b/**", "a/"));
  EXPECT_FALSE(all_below("a/\\**", "a/"));
}

/// Tries every way.
bool plainly_matches(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern.starts_with('*')) {
    const bool is_deep = pattern.starts_with("**");
    const std::string_view rest = pattern.substr(is_deep ? 2 : 1);
    for (std::size_t taken = 0;; ++taken) {
      if (plainly_matches(rest, name.substr(taken))) return true;
      if (taken == name.size() || (!is_deep && name[taken] == '/')) return false;
    }
  }
  if (name.empty() || (pattern[0] == '?' ? name[0] == '/' : pattern[0] != name[0])) return false;
  return plainly_matches(pattern.substr(1), name.substr(1));
}

TEST(NamePattern, IsRightAboutRandomNames) {
  std::mt19937 random(7);
  const auto text_of = [&](std::string_view letters, std::size_t most) {
    std::string made(random() % (most + 1), ' ');
    for (char& each : made) each = letters[random() % letters.size()];
    return made;
  };
  unsigned matched = 0;
  for (int i = 0; i < 200'000; ++i) {
    const std::string pattern = text_of("ab/?***", 9);
    const std::string name = text_of("ab/", 9);
    const bool expected = plainly_matches(pattern, name);
    matched += expected ? 1 : 0;
    ASSERT_EQ(matches(pattern, name), expected) << pattern << ' ' << name;
  }
  EXPECT_GT(matched, 10'000U);
}

TEST(NamePattern, TakesNoLongTimeForHostileNames) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "a*";
  const std::string name(1024, 'a');
  EXPECT_TRUE(matches(pattern, name));
  EXPECT_FALSE(matches(pattern + "b", name));
  std::string deep;
  for (int i = 0; i < 200; ++i) deep += "**a*/";
  EXPECT_FALSE(matches(deep, name));
}

}  // namespace
}  // namespace ucx::detail
