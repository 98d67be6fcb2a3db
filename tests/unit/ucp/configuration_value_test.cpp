#include "ucp/configuration_value.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ucx::detail {
namespace {

using form = value_rule::form;
using arity = value_rule::arity;

struct expectation {
  value_rule rule;
  std::vector<std::string> accepted;
  std::vector<std::string> refused;
};

void expect(const std::vector<expectation>& expectations) {
  for (const expectation& each : expectations) {
    for (const std::string& value : each.accepted) {
      EXPECT_TRUE(each.rule.accepts(value)) << value << " as " << each.rule.description();
    }
    for (const std::string& value : each.refused) {
      EXPECT_FALSE(each.rule.accepts(value)) << value << " as " << each.rule.description();
    }
  }
}

TEST(ValueRule, KnowsWords) {
  expect({
      {value_rule(form::boolean),
       {"y", "n", "Yes", "NO", "1", "0"},
       {"", "try", "2", "yess", "y "}},
      {value_rule(form::ternary), {"y", "n", "try", "maybe"}, {"", "auto", "on"}},
      {value_rule(form::ternary_or_auto), {"y", "try", "AUTO"}, {"", "inf"}},
      {value_rule(form::on_off_auto), {"on", "off", "auto", "y", "0"}, {"", "inf", "onn"}},
      {value_rule(form::choice, "bf_post|db"), {"bf_post", "DB"}, {"", "bf", "bf_post|db", "dbx"}},
  });
}

TEST(ValueRule, KnowsNumbers) {
  expect({
      {value_rule(form::natural),
       {"0", "17", "4294967295", "inf"},
       {"", "-1", "+1", "4294967296", "1.5", "0x10", "17k", "auto", " 1", "1 "}},
      {value_rule(form::integer),
       {"0", "-1", "2147483647", "-2147483648"},
       {"", "--1", "2147483648", "inf", "1.5", "1x"}},
      {value_rule(form::count), {"0", "18446744073709551615"}, {"", "-1", "inf", "1k"}},
      {value_rule(form::count_or_auto), {"5", "inf", "AUTO"}, {"", "-1", "infinite"}},
      {value_rule(form::real),
       {"0", "0.25", ".5", "-3.5", "1e3"},
       {"", "inf", "nan", "0.25x", "1e400", "e3", "0,25"}},
      {value_rule(form::positive_or_auto), {"0.1", "auto", "2"}, {"", "0", "-1", "inf"}},
      {value_rule(form::hexadecimal), {"0x7fff", "0XA", "auto"}, {"", "7fff", "0x", "0xg", "0x1 "}},
      {value_rule(form::range),
       {"7000", "7000-7100", "5-5"},
       {"", "-5", "5-", "9-5", "1-2-3", "a-b"}},
  });
}

TEST(ValueRule, KnowsQuantitiesWithUnits) {
  expect({
      {value_rule(form::size),
       {"0", "8192", "8k", "8K", "8kb", "1MB", "2g", "1t", "5b", "inf", "auto", "AUTO"},
       {"", "k", "8x", "8kk", "8kbb", "-1", "8 k", "1.5m", "8388608t", "99999999999999999999",
        "banana"}},
      {value_rule(form::duration),
       {"30", "30s", "5ms", "10us", "0.06ns", "2m", "1e-7"},
       {"", "s", "-1s", "30sec", "30 s", "inf", "auto", "5M"}},
      {value_rule(form::duration_or_auto), {"30s", "inf", "auto"}, {"", "INF", "forever"}},
      {value_rule(form::bandwidth),
       {"100MBps", "10Gb/s", "5000MBs", "1.5TBps", "9Bs", "auto"},
       {"", "100", "100MB", "100Mps", "100 MBps", "100mBps", "100MBpsx", "inf", "-1MBps"}},
  });
}

TEST(ValueRule, KnowsLists) {
  expect({
      {value_rule(form::text, {}, arity::list), {"a", "a,b"}, {"", ",", "a,", ",a", "a,,b"}},
      {value_rule(form::choice, "heap|mmap", arity::list), {"heap", "MMAP,heap"}, {"heap,huge"}},
      {value_rule(form::text, {}, arity::allowed), {"all", "a,b", "^a,b"}, {"", "^", "^a,"}},
      {value_rule(form::range, {}, arity::list), {"1", "1-2,5"}, {"1-2,x"}},
      {value_rule::keyed(form::size, "intra,inter"),
       {"8k", "intra:8k,inter:auto", "8k,inter:1m", "inter:1m,8k"},
       {"", "intra:8k", "8k,other:1m", "8k,inter:x", "x", "intra:1,intra:2,inter:3", "8k,"}},
  });
}

TEST(ValueRule, TakesTextAsItIsButForControlCharacters) {
  using namespace std::string_literals;
  expect({
      {value_rule(form::text), {"", "any thing", "\xc3\xa4"}, {"a\nb", "a\0b"s, "\x7f", "\t"}},
      {value_rule(form::anything), {"", "any thing"}, {"a\nb", "a\0b"s}},
      {value_rule(form::text, {}, arity::list), {"a b,c"}, {"a\n,b"}},
  });
}

TEST(ValueRule, SaysWhatItAccepts) {
  EXPECT_EQ(value_rule(form::boolean).description(), "y or n");
  EXPECT_EQ(value_rule(form::choice, "none|weak|auto").description(), "one of none, weak, auto");
  EXPECT_EQ(value_rule(form::choice, "heap|mmap", arity::list).description(),
            "a list separated by commas, each one of heap, mmap");
  EXPECT_NE(value_rule::keyed(form::size, "intra,inter").description().find("intra"),
            std::string::npos);
  EXPECT_NE(value_rule(form::size).description().find("8k"), std::string::npos);
}

TEST(ValueRule, ReadsTheSyntaxThatUcxDocuments) {
  const std::vector<std::pair<std::string, value_rule>> pairs{
      {"<y|n>", value_rule(form::boolean)},
      {"<yes|no|try>", value_rule(form::ternary)},
      {"<yes|no|try|auto>", value_rule(form::ternary_or_auto)},
      {"<on|off|auto>", value_rule(form::on_off_auto)},
      {"unsigned integer", value_rule(form::natural)},
      {"integer", value_rule(form::integer)},
      {"unsigned long", value_rule(form::count)},
      {"unsigned long: <number>, \"inf\", or \"auto\"", value_rule(form::count_or_auto)},
      {"memory units: <number>[b|kb|mb|gb], \"inf\", or \"auto\"", value_rule(form::size)},
      {"floating point number", value_rule(form::real)},
      {"positive floating point number or \"auto\"", value_rule(form::positive_or_auto)},
      {"time value: <number>[s|us|ms|ns]", value_rule(form::duration)},
      {"time value: <number>[m|s|ms|us|ns]", value_rule(form::duration)},
      {"time value: <number>[s|us|ms|ns], \"inf\", or \"auto\"",
       value_rule(form::duration_or_auto)},
      {"bandwidth value: <number>[T|G|M|K]B|b[[p|/]s] or \"auto\"", value_rule(form::bandwidth)},
      {"numbers range: <number>-<number>", value_rule(form::range)},
      {"hex representation of a number or \"auto\"", value_rule(form::hexadecimal)},
      {"[v1|v2]", value_rule(form::choice, "v1|v2")},
      {"comma-separated list of: [heap|mmap]", value_rule(form::choice, "heap|mmap", arity::list)},
      {"comma-separated list (prepend '^' for negation) of: string",
       value_rule(form::text, {}, arity::allowed)},
      {"comma-separated list of value or key:value pairs, where key is one of [intra,inter] and "
       "value is: memory units: <number>[b|kb|mb|gb], \"inf\", or \"auto\". And so on.",
       value_rule::keyed(form::size, "intra,inter")},
  };
  for (const auto& [syntax, rule] : pairs) {
    EXPECT_EQ(value_rule::of_syntax(syntax).description(), rule.description()) << syntax;
  }
}

TEST(ValueRule, LeavesASyntaxThatItDoesNotKnowToUcx) {
  for (const char* const syntax :
       {"", "N/A", "a table of things", "comma-separated list of: things",
        "comma-separated list of value or key:value pairs", "comma-separated list (so) far: x"}) {
    EXPECT_TRUE(value_rule::of_syntax(syntax).accepts("what,ever:it is")) << syntax;
  }
}

TEST(ReadSize, GivesBytes) {
  EXPECT_EQ(read_size("0"), 0U);
  EXPECT_EQ(read_size("1052672"), 1052672U);
  EXPECT_EQ(read_size("64k"), 65536U);
  EXPECT_EQ(read_size("1MB"), 1048576U);
  EXPECT_EQ(read_size("3g"), std::uint64_t{3} << 30U);
  EXPECT_EQ(read_size("inf"), std::nullopt);
  EXPECT_EQ(read_size("auto"), std::nullopt);
  EXPECT_EQ(read_size("1kx"), std::nullopt);
}

}  // namespace
}  // namespace ucx::detail
