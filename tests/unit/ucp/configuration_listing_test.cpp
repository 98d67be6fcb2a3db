// What UCX lists, and that our rules agree with the UCX that the program runs with.
#include "ucp/configuration_listing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "support/fake_ucp/fake_network.hpp"
#include "ucp/configuration_value.hpp"

namespace ucx::detail {
namespace {

using testing::IsEmpty;

class ConfigurationListing : public testing::Test {
 protected:
  ConfigurationListing() {
    EXPECT_EQ(real_ucp().config_read(nullptr, nullptr, &config), UCS_OK);
    EXPECT_EQ(real_ucp().config_modify(config, "LOG_LEVEL", "fatal"), UCS_OK);
  }
  ~ConfigurationListing() override { real_ucp().config_release(config); }

  std::string value_of(const std::string& key) const {
    for (const listed_key& each : list_configuration(real_ucp(), config, false)) {
      if (each.key == key) return each.value;
    }
    return "(none)";
  }

  ucp_config_t* config = nullptr;
};

TEST_F(ConfigurationListing, HasKeysWithValues) {
  EXPECT_EQ(value_of("TLS"), "all");
  EXPECT_EQ(real_ucp().config_modify(config, "TLS", "tcp,self"), UCS_OK);
  EXPECT_EQ(value_of("TLS"), "tcp,self");
  EXPECT_EQ(value_of("UCX_TLS"), "(none)");
}

TEST_F(ConfigurationListing, HasTransportsKeysOnceTheyAreSet) {
  EXPECT_EQ(value_of("CM_REUSEADDR"), "(none)");
  EXPECT_EQ(real_ucp().config_modify(config, "CM_REUSEADDR", "y"), UCS_OK);
  EXPECT_EQ(value_of("CM_REUSEADDR"), "y");
}

TEST_F(ConfigurationListing, HasTheSyntaxWhereItWasAskedFor) {
  for (const listed_key& each : list_configuration(real_ucp(), config, false)) {
    EXPECT_THAT(each.syntax, IsEmpty()) << each.key;
  }
  const auto documented = list_configuration(real_ucp(), config, true);
  EXPECT_GT(documented.size(), 50U);
  for (const listed_key& each : documented) {
    EXPECT_FALSE(each.syntax.empty()) << each.key;
    EXPECT_TRUE(each.key != "UNIFIED_MODE" || each.syntax == "<y|n>") << each.syntax;
  }
}

TEST_F(ConfigurationListing, HasValuesThatOurRulesAccept) {
  for (const listed_key& each : list_configuration(real_ucp(), config, true)) {
    if (each.value.empty()) continue;  // an empty list can be inherited, but not asked for
    EXPECT_TRUE(value_rule::of_syntax(each.syntax).accepts(each.value))
        << each.key << '=' << each.value << " (" << each.syntax << ')';
  }
}

// What our rules accept UCX accepts; otherwise it would print, or go on without the value.
TEST_F(ConfigurationListing, HasRulesNotLaxerThanUcx) {
  static constexpr std::array<const char*, 44> values{
      "",          "y",      "n",       "yes",
      "NO",        "1",      "0",       "try",
      "maybe",     "auto",   "AUTO",    "inf",
      "on",        "off",    "17",      "-3",
      "1.5",       ".5",     "1e3",     "8k",
      "8KB",       "2g",     "1t",      "5b",
      "30s",       "5ms",    "10us",    "3ns",
      "2m",        "0.06ns", "100MBps", "10Gb/s",
      "5000MBs",   "9Bs",    "0x7fff",  "7-9",
      "all",       "a,b",    "^a",      "host",
      "host,cuda", "v1",     "8k,9k",   "intra:1k,inter:2k"};
  int compared = 0;
  std::string laxer;
  const std::string undecided = value_rule(value_rule::form::anything).description();
  for (const listed_key& each : list_configuration(real_ucp(), config, true)) {
    const value_rule rule = value_rule::of_syntax(each.syntax);
    for (const char* const value : values) {
      if (!rule.accepts(value)) continue;
      ++compared;
      if (real_ucp().config_modify(config, each.key.c_str(), value) == UCS_OK) continue;
      if (rule.description() == undecided) continue;
      laxer += each.key + '=' + value + " (" + each.syntax + ")\n";
    }
  }
  EXPECT_THAT(laxer, IsEmpty());
  EXPECT_GT(compared, 500);
}

TEST(ConfigurationListingOfNothing, IsEmpty) {
  test::fake_network network;
  ucp_api& api = network.add_process("process").api();
  EXPECT_THAT(list_configuration(api, nullptr, true), IsEmpty());
  network.forget_violations();
}

}  // namespace
}  // namespace ucx::detail
