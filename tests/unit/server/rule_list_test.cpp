// The rules of a server as values: their text, and what they decide.
#include "server/rule_list.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/files/temporary_directory.hpp"
#include "ucx/access_rules.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

using testing::HasSubstr;
using right = access_right;

peer_identity with_token(const std::string& name) { return {.token = name}; }
peer_identity of_user(std::uint32_t user, std::vector<std::uint32_t> groups = {}) {
  return {.user = user, .groups = std::move(groups)};
}
peer_identity owner() { return {.user = 1, .is_owner = true}; }

std::string error_of(std::string_view text) {
  try {
    static_cast<void>(access_rules::parse(text));
  } catch (const error& thrown) {
    EXPECT_EQ(thrown.code(), errc::bad_configuration);
    return thrown.what();
  }
  return {};
}

TEST(AccessRules, WithoutALineAllowOnlyTheOwner) {
  for (const access_rules& none : {access_rules(), access_rules::parse("\n# nothing\n \t\r\n")}) {
    EXPECT_TRUE(none.allows(owner(), right::all, "a"));
    EXPECT_FALSE(none.allows({}, right::list, "a"));
    EXPECT_FALSE(none.allows(with_token("a"), right::read, "a"));
    EXPECT_FALSE(none.allows(of_user(0), right::read, "a"));
  }
}

TEST(AccessRules, TheFirstLineThatNamesTheRightDecides) {
  const access_rules rules = access_rules::parse(
      "deny  token ci write         results/old/**\n"
      "allow token ci read,write    results/**\n"
      "deny  token ci all           **\n"
      "allow anybody  read,list     **\n");
  EXPECT_TRUE(rules.allows(with_token("ci"), right::read | right::write, "results/new/a"));
  EXPECT_TRUE(rules.allows(with_token("ci"), right::read, "results/old/a"));
  EXPECT_FALSE(rules.allows(with_token("ci"), right::write, "results/old/a"));
  EXPECT_FALSE(rules.allows(with_token("ci"), right::read | right::write, "results/old/a"));
  EXPECT_FALSE(rules.allows(with_token("ci"), right::list, "other"));
  EXPECT_TRUE(rules.allows(with_token("other"), right::list, "other"));
  EXPECT_FALSE(rules.allows(with_token("other"), right::create, "other"));
}

TEST(AccessRules, RestrictTheOwnerToo) {
  const access_rules rules = access_rules().deny("owner", right::write, "archive/**");
  EXPECT_FALSE(rules.allows(owner(), right::write, "archive/a"));
  EXPECT_TRUE(rules.allows(owner(), right::read, "archive/a"));
  EXPECT_TRUE(rules.allows(owner(), right::all, "a"));
  EXPECT_FALSE(access_rules().deny("anybody", right::all).allows(owner(), right::list, "a"));
}

TEST(AccessRules, NameCertificates) {
  const peer_identity node{.certificate = "dns:node7"};
  const access_rules rules = access_rules::parse(
      "allow certificate dns:Node7 read a\n"
      "allow certificate * list **\n");
  EXPECT_TRUE(rules.allows(node, right::read, "a"));
  EXPECT_FALSE(rules.allows({.certificate = "dns:node8"}, right::read, "a"));
  EXPECT_TRUE(rules.allows({.certificate = "uri:x"}, right::list, "b"));
  EXPECT_FALSE(rules.allows(with_token("dns:node7"), right::list, "a"));
  EXPECT_FALSE(rules.allows({}, right::list, "a"));
  EXPECT_FALSE(access_rules().allow("token *", right::all).allows(node, right::list, "a"));
  EXPECT_EQ(to_string(node), "certificate \"dns:node7\"");
}

TEST(AccessRules, NameTokensUsersAndGroups) {
  const access_rules rules = access_rules::parse(
      "allow token a-1 read t\nallow user 12 read u\nallow group 34 read g\n"
      "allow token * read every/token\nallow user * read every/user\nallow group * read every/g\n"
      "allow user root read r\nallow group root read r\n");
  EXPECT_TRUE(rules.allows(with_token("a-1"), right::read, "t"));
  EXPECT_FALSE(rules.allows(with_token("a-2"), right::read, "t"));
  EXPECT_TRUE(rules.allows(of_user(12), right::read, "u"));
  EXPECT_FALSE(rules.allows(of_user(13), right::read, "u"));
  EXPECT_TRUE(rules.allows(of_user(1, {5, 34}), right::read, "g"));
  EXPECT_FALSE(rules.allows(of_user(34, {5}), right::read, "g"));
  EXPECT_TRUE(rules.allows(with_token("b"), right::read, "every/token"));
  EXPECT_FALSE(rules.allows(of_user(1), right::read, "every/token"));
  EXPECT_TRUE(rules.allows(of_user(99), right::read, "every/user"));
  EXPECT_FALSE(rules.allows({}, right::read, "every/user"));
  EXPECT_TRUE(rules.allows(of_user(99, {1}), right::read, "every/g"));
  EXPECT_TRUE(rules.allows(of_user(0), right::read, "r"));
  EXPECT_TRUE(rules.allows(of_user(1, {0}), right::read, "r"));
}

TEST(AccessRules, TellTheLineThatIsWrong) {
  EXPECT_THAT(error_of("allow anybody read **\n\n# a\npermit anybody read **"),
              HasSubstr("line 4: \"permit\" is neither \"allow\" nor \"deny\""));
  EXPECT_THAT(error_of("allow anybody raed **"), HasSubstr("line 1: \"raed\" is no right"));
  EXPECT_THAT(error_of("allow anybody read, **"), HasSubstr("\"\" is no right"));
  EXPECT_THAT(error_of("allow everyone read **"), HasSubstr("is none of anybody"));
  EXPECT_THAT(error_of("allow"), HasSubstr("is none of anybody"));
  EXPECT_THAT(error_of("allow anybody"), HasSubstr("the rights are missing"));
  EXPECT_THAT(error_of("allow anybody read"), HasSubstr("a pattern of names is missing"));
  EXPECT_THAT(error_of("allow token"), HasSubstr("a name is missing"));
  EXPECT_THAT(error_of("allow token a/b read **"), HasSubstr("other letters"));
  EXPECT_THAT(error_of("allow user no-such-user-here read **"), HasSubstr("there is no user"));
  EXPECT_THAT(error_of("allow group 4294967296 read **"), HasSubstr("there is no group"));
  EXPECT_THAT(error_of("allow certificate a read **"), HasSubstr("none of uri:, dns: and email:"));
  EXPECT_THAT(error_of("allow anybody read a\\"), HasSubstr("ends in a backslash"));
  EXPECT_THAT(error_of("allow anybody read \xff"), HasSubstr("is not UTF-8"));
  EXPECT_THAT(error_of(std::string("allow anybody read a\0b", 22)), HasSubstr("is not UTF-8"));
  EXPECT_THAT(error_of("allow anybody read " + std::string(1025, 'a')), HasSubstr("1024 bytes"));
  EXPECT_THAT(error_of(std::string((1U << 20U) + 1, '#')), HasSubstr("more than 1 MiB"));
}

TEST(AccessRules, KeepBlanksWithinPatterns) {
  const access_rules rules = access_rules::parse("  allow\tanybody  read \t a b \t\r\n");
  EXPECT_TRUE(rules.allows({}, right::read, "a b"));
  EXPECT_FALSE(rules.allows({}, right::read, "a b "));
}

TEST(AccessRules, AreMadeByCallsAsByText) {
  const access_rules first = access_rules().allow("token ci", right::read | right::list, "a/*");
  const access_rules second = first.deny("token ci", right::write);
  EXPECT_TRUE(second.allows(with_token("ci"), right::read | right::list, "a/b"));
  EXPECT_FALSE(second.allows(with_token("ci"), right::write, "a/b"));
  std::error_code ec;
  EXPECT_FALSE(first.allow("nobody else", right::read, "**", ec).allows({}, right::read, "a"));
  EXPECT_EQ(ec, errc::bad_configuration);
  static_cast<void>(first.allow("anybody and more", right::read, "**", ec));
  EXPECT_EQ(ec, errc::bad_configuration);
  static_cast<void>(first.allow("anybody", right::none, "**", ec));
  EXPECT_EQ(ec, errc::bad_configuration);
}

TEST(AccessRules, AreReadOfFilesThatNobodyElseMayWrite) {
  const test::temporary_directory folder;
  const std::filesystem::path file = folder / "rules";
  std::error_code ec;
  static_cast<void>(access_rules::read(file, ec));
  EXPECT_EQ(ec, errc::no_such_name);
  std::ofstream(file) << "allow anybody read a\nallow anybody read\n";
  try {
    static_cast<void>(access_rules::read(file));
    ADD_FAILURE() << "a line is wrong";
  } catch (const error& thrown) {
    EXPECT_THAT(thrown.what(), HasSubstr(file.string() + ", line 2: "));
  }
  std::ofstream(file) << "allow anybody read a\n";
  ::chmod(file.c_str(), 0644);
  EXPECT_TRUE(access_rules::read(file).allows({}, right::read, "a"));
  ::chmod(file.c_str(), 0664);
  static_cast<void>(access_rules::read(file, ec));
  EXPECT_EQ(ec, errc::not_secure);
  static_cast<void>(access_rules::read(folder / "", ec));
  EXPECT_EQ(ec, errc::not_supported);
  if (::geteuid() != 0) return;
  ::chmod(file.c_str(), 0644);
  ASSERT_EQ(::chown(file.c_str(), 12345, 0), 0);
  static_cast<void>(access_rules::read(file, ec));
  EXPECT_EQ(ec, errc::not_secure);
}

TEST(RuleList, KnowsWhatIsAllowedBelowADirectory) {
  const auto rules = rule_list::parse(
      "deny anybody list a/secret/**\nallow anybody list a/*/x\nallow anybody read,remove b/**\n"
      "deny anybody remove c/d\nallow anybody read,remove c/**\n",
      "rules", [](bool, const std::string&) { return std::nullopt; });
  ASSERT_TRUE(rules);
  EXPECT_TRUE(rules->may_allow_below({}, right::list, ""));
  EXPECT_TRUE(rules->may_allow_below({}, right::list, "a/"));
  EXPECT_TRUE(rules->may_allow_below({}, right::list, "a/b/"));
  EXPECT_FALSE(rules->may_allow_below({}, right::list, "a/b/c/"));
  EXPECT_FALSE(rules->may_allow_below({}, right::list, "a/secret/"));
  EXPECT_FALSE(rules->may_allow_below({}, right::list, "b/"));
  EXPECT_TRUE(rules->may_allow_below(owner(), right::list, "b/"));
  EXPECT_TRUE(rules->allows_all_below({}, right::read | right::remove, "b/c/"));
  EXPECT_FALSE(rules->allows_all_below({}, right::read | right::remove, "c/"));
  EXPECT_TRUE(rules->allows_all_below({}, right::read, "c/"));
  EXPECT_FALSE(rules->allows_all_below({}, right::list, "a/"));
  EXPECT_TRUE(rules->allows_all_below(owner(), right::write, "a/"));
}

TEST(RuleList, SurvivesHostileText) {
  const std::string good =
      "allow token ci read,write results/**\n# a\ndeny user 7 all \\*\nallow group * list ?\n";
  const auto none = [](bool, const std::string&) { return std::nullopt; };
  for (std::size_t size = 0; size <= good.size(); ++size) {
    static_cast<void>(rule_list::parse(good.substr(0, size), "rules", none));
  }
  std::mt19937 random(11);
  unsigned read = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = good;
    for (int changes = 0; changes < 3; ++changes) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    const auto rules = rule_list::parse(text, "rules", none);
    if (!rules) continue;
    ++read;
    static_cast<void>(rules->allows(with_token("ci"), right::all, "results/a"));
  }
  EXPECT_GT(read, 100U);
}

}  // namespace
}  // namespace ucx::detail
