// `ucxio call` and `ucxio ls --calls`, of a server in this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "support/tool/tool.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/access_rules.hpp"
#include "ucx/rpc.hpp"

namespace ucx::test {
namespace {

struct named_place {
  std::string name;
  std::optional<std::int8_t> height;
};

}  // namespace
}  // namespace ucx::test

template <>
struct ucx::call_fields<ucx::test::named_place> {
  static constexpr std::string_view name = "place";
  static constexpr std::tuple fields{ucx::call_field("name", &ucx::test::named_place::name),
                                     ucx::call_field("height", &ucx::test::named_place::height)};
};

namespace ucx::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class CallTool : public ::testing::Test {
 protected:
  CallTool() {
    calls_.add("add", [](int a, int b) { return a + b; },
               {.documentation = "Returns\x1b the sum."});
    calls_.add("add/2", [](double a, float b) { return a + double{b}; });
    calls_.add("bytes", [](const std::vector<std::byte>& value) { return value; });
    calls_.add("fail", [](const std::string& text) -> int { throw error(errc::busy, text); });
    calls_.add("greet", [](const std::string& name) { return "hello " + name; });
    calls_.add("half", [](float value) { return value / 2; });
    calls_.add("largest", [](std::uint64_t a, std::int64_t b) { return std::pair(a, b); });
    calls_.add("lists", [](std::vector<int> a, std::array<bool, 2> b) { return std::tuple(a, b); });
    calls_.add("nothing", [] {});
    calls_.add("numbers", [](const std::map<int, std::string>& value) { return value; });
    calls_.add("place", [](named_place value) { return value; });
  }

  command_result call(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"call", owner_.url()});
    return run_tool(arguments);
  }
  /// Returns the result of a call.
  json result_of(std::vector<std::string> arguments) const {
    const command_result result = call(std::move(arguments));
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return json::parse(result.out, nullptr, false);
  }

  ucx_server owner_;
  call_table calls_;
  call_server serves_{owner_, calls_};
};

TEST_F(CallTool, PrintsTheResultAsJson) {
  EXPECT_EQ(call({"add", "25", "17"}).out, "42\n");
  EXPECT_EQ(result_of({"add", "25", "-17"}), 8);
  EXPECT_EQ(result_of({"add", "-25", "-17"}), -42);
  EXPECT_EQ(result_of({"add/2", "0.5", "1e2"}), 100.5);
  EXPECT_EQ(result_of({"greet", "you"}), "hello you");
  EXPECT_EQ(result_of({"greet", "[1,2]"}), "hello [1,2]") << "a text is not JSON";
  EXPECT_EQ(result_of({"greet", "ls"}), "hello ls");
  EXPECT_EQ(result_of({"greet", "--", "--help"}), "hello --help");
  EXPECT_EQ(result_of({"greet", "--", "--"}), "hello --");
  EXPECT_EQ(call({"half", "0.2"}).out, "0.1\n");
  EXPECT_EQ(call({"half", "NaN"}).code, 2);
  EXPECT_EQ(result_of({"half", "\"-Infinity\""}), "-Infinity");
  EXPECT_EQ(call({"nothing"}).out, "null\n");
}

TEST_F(CallTool, ConvertsArgumentsOfEachType) {
  EXPECT_EQ(result_of({"largest", "18446744073709551615", "-9223372036854775808"}),
            json::array({std::numeric_limits<std::uint64_t>::max(),
                         std::numeric_limits<std::int64_t>::min()}));
  EXPECT_EQ(result_of({"lists", "[1,2,3]", "[true,false]"}).dump(), "[[1,2,3],[true,false]]");
  EXPECT_EQ(result_of({"lists", "[]", "[true,false]"}).dump(), "[[],[true,false]]");
  EXPECT_EQ(result_of({"numbers", R"({"7":"x","-1":"y"})"}).dump(), R"({"-1":"y","7":"x"})");
  EXPECT_EQ(result_of({"place", R"({"name":"here","height":-3})"}).dump(),
            R"({"height":-3,"name":"here"})");
  EXPECT_EQ(result_of({"place", R"({"name":"here"})"}).dump(), R"({"height":null,"name":"here"})");
  for (const std::string text : {"", "AA==", "AAE=", "AAEC", "/+8gAAECAw=="}) {
    EXPECT_EQ(result_of({"bytes", text}), text);
  }
}

TEST_F(CallTool, KeepsTheSignOfZeroAndShowsFloatsAsSuch) {
  EXPECT_EQ(call({"half", "-0"}).out, "-0.0\n");
  EXPECT_EQ(call({"half", "-0.0"}).out, "-0.0\n");
  EXPECT_EQ(call({"half", "0"}).out, "0.0\n");
  EXPECT_EQ(call({"half", "2"}).out, "1.0\n");
  EXPECT_EQ(call({"add/2", "-0", "-0"}).out, "-0.0\n");
  EXPECT_EQ(call({"add/2", "9007199254740993", "0"}).out, "9.007199254740992e+15\n");
  EXPECT_EQ(call({"add", "-0", "-0"}).out, "0\n");
  EXPECT_EQ(result_of({"largest", "-0", "-0"}).dump(), "[0,0]");
}

TEST_F(CallTool, RefusesWhatIsNoArgument) {
  const std::vector<std::vector<std::string>> wrong{
      {"add", "1"},
      {"add", "1", "2", "3"},
      {"add", "1", "2.0"},
      {"add", "1", "2147483648"},
      {"add", "1", "words"},
      {"add", "1", "\"2\""},
      {"largest", "-1", "0"},
      {"largest", "0", "9223372036854775808"},
      {"half", "1e300"},
      {"bytes", "AA"},
      {"bytes", "AB=="},
      {"bytes", "A*=="},
      {"lists", "[1,\"2\"]", "[true,false]"},
      {"lists", "[]", "[true]"},
      {"numbers", R"({"x":"y"})"},
      {"numbers", R"({"7":"x","7":"y"})"},
      {"numbers", R"({"7":"x"," 7":"y"})"},
      {"place", R"({"height":1})"},
      {"place", R"({"name":"x","name":"y"})"},
      {"place", R"({"name":"x","other":1})"},
      {"greet", "\xff"},
      {"greet", "--unknown"},
  };
  for (const auto& each : wrong) expect_failure(call(each), 2, "");
  EXPECT_EQ(calls_.statistics().failed + calls_.statistics().invalid, 0U);
  expect_failure(call({"add", "1"}), 2, "(i32,i32)->i32");
  expect_failure(call({"add", "1", "x"}), 2, "argument 2 of add");
  expect_failure(run_tool({"call", owner_.url("name"), "add"}), 2, "is no server");
}

TEST_F(CallTool, EndsWithTheCodeOfTheError) {
  expect_failure(call({"fail", "some words"}), 1, "some words");
  expect_failure(call({"absent"}), 3, "\"absent\"");
  calls_.refuse([](const call_context&, std::string_view name) { return name == "add"; });
  expect_failure(call({"add", "1", "2"}), 5, "add");
  serves_ = call_server();
  expect_failure(call({"add", "1", "2"}), 3, "serves no calls");
  expect_failure(run_tool({"ls", "--calls", owner_.url()}), 3, "serves no calls");
}

TEST_F(CallTool, SaysThatAFunctionMayHaveRunWhereItsResultIsNone) {
  const std::string map = "()->map<i32,optional<i32>>";
  calls_.add_dynamic("twice", map, [](call_context&, call_reader&, call_writer& to) {
    to.map(2).integer(1).nil().integer(1).nil();
  });
  expect_failure(call({"twice"}), 7, "the function may have run");
}

TEST_F(CallTool, ListsTheFunctions) {
  const command_result listed = run_tool({"ls", "--calls", owner_.url()});
  EXPECT_EQ(listed.code, 0) << listed.err;
  EXPECT_THAT(listed.out, HasSubstr("add      (i32,i32)->i32\nadd/2    (f64,f32)->f64\n"));
  const std::string names = run_tool({"ls", "--calls", "-1", owner_.url()}).out;
  EXPECT_TRUE(names.starts_with("add\nadd/2\nbytes\nfail\n")) << names;
  const std::string full = run_tool({"ls", "--calls", "-l", owner_.url("add")}).out;
  EXPECT_EQ(full, "add  (i32,i32)->i32  " + to_string(call_signature("(i32,i32)->i32").hash()) +
                      "  Returns\\x1b the sum.\n");
  const json told = json::parse(run_tool({"ls", "--calls", "--json", owner_.url()}).out);
  ASSERT_EQ(told.size(), 11U);
  EXPECT_EQ(told[0]["name"], "add");
  EXPECT_EQ(told[0]["version"], 1);
  EXPECT_EQ(told[0]["signature"], "(i32,i32)->i32");
  EXPECT_EQ(told[0]["hash"], to_string(call_signature("(i32,i32)->i32").hash()));
  EXPECT_EQ(told[0]["documentation"], "Returns\x1b the sum.");
  EXPECT_EQ(told[1]["version"], 2);
  expect_failure(run_tool({"ls", "--calls", owner_.url("absent")}), 3, "\"absent\"");
}

TEST_F(CallTool, SeesNoFunctionThatTheRulesHide) {
  owner_.set_rules(access_rules().allow("anybody", access_right::call, "g*"));
  EXPECT_EQ(run_tool({"ls", "--calls", owner_.url()}).out, "greet  (text)->text\n");
  expect_failure(call({"add", "1", "2"}), 3, "\"add\"");
  EXPECT_EQ(result_of({"greet", "you"}), "hello you");
}

}  // namespace
}  // namespace ucx::test
