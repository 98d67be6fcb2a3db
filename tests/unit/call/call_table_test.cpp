#include <gtest/gtest.h>

#include <any>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/name.hpp"
#include "support/bytes/hex.hpp"
#include "unit/call/call_examples.hpp"

namespace ucx::calls {
namespace {

using test::from_hex;
using message = std::vector<std::byte>;

/// How a call ended at its caller.
template <class Result>
struct ending {
  std::optional<Result> value;
  std::error_code code = {};
  std::string text = {};
};

template <class Result, class... Arguments>
ending<Result> ending_of(const remote_function<Result(Arguments...)>& called,
                         const message& answer) {
  std::error_code ec;
  const Result value = called.decode(answer, ec);
  try {
    EXPECT_EQ(called.decode(answer), value);
    EXPECT_FALSE(ec);
    return {value};
  } catch (const error& failed) {
    EXPECT_EQ(failed.code(), ec) << failed.what();
    return {{}, ec, failed.what()};
  }
}

/// A table with functions of several kinds, and what calls it.
class CallTable : public ::testing::Test {
 protected:
  CallTable() {
    calls_.add("add", [](int a, int b) { return a + b; });
    calls_.add("add/2", [](double a, double b) { return a + b; });
    calls_.add("add/10", [](int a) { return a; });
    calls_.add("address", [] { return std::string("here"); });
    calls_.add("count",
               [](call_context& context) { return ++*std::any_cast<int*>(context.program); });
    calls_.add("scaled", [](shape all, double by) {
      for (point& each : all.corners) each = {each.x * by, each.y * by};
      return all;
    });
    calls_.add("repeat", [](std::string_view text, std::size_t times) {
      std::string made;
      while (times-- > 0) made += text;
      return made;
    });
    calls_.add("fail", [](const std::string& how) { fail(how); });
  }

  static void fail(const std::string& how) {
    if (how == "ours") throw error(errc::stale_region, "reading");
    if (how == "system") throw std::system_error(EACCES, std::system_category(), "opening");
    if (how == "memory") throw std::bad_alloc();
    if (how == "number") throw 7;
    throw std::runtime_error(how);
  }

  template <class Form, class... Arguments>
  auto call(std::string_view name, const Arguments&... arguments) {
    const remote_function<Form> called(name);
    return ending_of(called, calls_.dispatch(called.encode(arguments...), context_));
  }

  int counted_ = 0;
  call_context context_{.program = &counted_};
  call_table calls_;
};

TEST_F(CallTable, CallsFunctionsByNameAndVersion) {
  EXPECT_EQ((call<int(int, int)>("add", 40, 2).value), 42);
  EXPECT_EQ((call<double(double, double)>("add/2", 0.5, 1.0).value), 1.5);
  EXPECT_EQ((call<std::string()>("address").value), "here");
  EXPECT_EQ((call<std::string(std::string, std::uint64_t)>("repeat", "ab", 3U).value), "ababab");
}

TEST_F(CallTable, PassesRecords) {
  const shape asked{"s", {{1, 2}}, {}};
  const shape wanted{"s", {{2, 4}}, {}};
  EXPECT_EQ((call<shape(shape, double)>("scaled", asked, 2.0).value), wanted);
}

TEST_F(CallTable, GivesFunctionsTheContext) {
  EXPECT_EQ(call<int()>("count").value, 1);
  EXPECT_EQ(call<int()>("count").value, 2);
  EXPECT_EQ(counted_, 2);
}

TEST_F(CallTable, TakesFunctionsOfEachForm) {
  struct counter {
    int operator()(int by) { return count += by; }
    int count = 0;
  };
  int (*const pointer)(int) = [](int value) { return -value; };
  calls_.add("pointer", pointer);
  calls_.add("counter", counter());
  calls_.add("moved", [held = std::make_unique<int>(5)](std::string&& text) noexcept {
    return static_cast<int>(text.size()) + *held;
  });
  calls_.add("nothing", [](call_context&, int) {});
  EXPECT_EQ(call<int(int)>("pointer", 3).value, -3);
  EXPECT_EQ(call<int(int)>("counter", 3).value, 3);
  EXPECT_EQ(call<int(int)>("counter", 3).value, 6);
  EXPECT_EQ(call<int(std::string)>("moved", "abc").value, 8);
  const remote_function<void(int)> nothing("nothing");
  EXPECT_NO_THROW(nothing.decode(calls_.dispatch(nothing.encode(1), context_)));
}

TEST_F(CallTable, RefusesNamesThatAreTakenOrNone) {
  const auto add = [&](std::string_view name) {
    std::error_code ec;
    calls_.add(
        name, [] {}, ec);
    return ec;
  };
  EXPECT_EQ(add("add"), errc::already_exists);
  EXPECT_FALSE(add("add/3"));
  EXPECT_FALSE(add("_a-b.C9"));
  EXPECT_FALSE(add("n" + std::string(127, 'n')));
  for (const std::string& each :
       {std::string(), std::string("1a"), std::string("a b"), std::string("add/1"),
        std::string("add/0"), std::string("add/02"), std::string("add/"), std::string("add/x"),
        std::string("add/2/3"), std::string("/2"), std::string("add/100000"), std::string("ä"),
        std::string("a\0b", 3), std::string(129, 'n')}) {
    EXPECT_EQ(add(each), errc::bad_name) << each;
    std::error_code ec;
    const call_function named(each, "()->nil", ec);
    EXPECT_EQ(ec, errc::bad_name) << each;
  }
}

TEST_F(CallTable, RefusesEmptyFunctionsAndWrongSignatures) {
  std::error_code ec;
  calls_.add_dynamic("none", "()->nil", nullptr, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  calls_.add_dynamic(
      "none", "()->", [](auto&, auto&, auto&) {}, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  calls_.add_dynamic(
      "none", "(window:r)->nil", [](auto&, auto&, auto&) {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  EXPECT_THROW(calls_.add("add", [] {}), error);
}

TEST_F(CallTable, EncodesNoCallOfAFunctionThatWasNotNamed) {
  for (const auto& [name, signature] : {std::pair("a b", "()->nil"), std::pair("add", "()->")}) {
    std::error_code ec;
    const call_function named(name, signature, ec);
    EXPECT_TRUE(ec) << name;
    EXPECT_EQ(named.name(), "");
    EXPECT_TRUE(named.encode(call_writer(), ec).empty());
    EXPECT_EQ(ec, errc::bad_name);
    EXPECT_THROW(named.encode(call_writer()), error);
  }
}

TEST_F(CallTable, SaysThatAFunctionIsUnknown) {
  const auto absent = call<int(int)>("subtract", 1);
  EXPECT_EQ(absent.code, errc::no_such_name);
  EXPECT_NE(absent.text.find("calling subtract: there is no function of this name"),
            std::string::npos)
      << absent.text;
  const auto version = call<int(int)>("add/3", 1);
  EXPECT_EQ(version.code, errc::no_such_name);
  EXPECT_NE(version.text.find("there is add, add/10, add/2"), std::string::npos) << version.text;
  EXPECT_EQ(version.text.find("address"), std::string::npos) << version.text;
}

TEST_F(CallTable, SaysBothSignaturesWhereTheyDiffer) {
  const auto other = call<int(int, std::string)>("add", 1, "2");
  EXPECT_EQ(other.code, errc::version_mismatch);
  EXPECT_NE(other.text.find("(i32,text)->i32"), std::string::npos) << other.text;
  EXPECT_NE(other.text.find("(i32,i32)->i32"), std::string::npos) << other.text;
  EXPECT_EQ((call<std::int64_t(int, int)>("add", 1, 2).code), errc::version_mismatch);
}

TEST_F(CallTable, TellsWhatAFunctionThrew) {
  const remote_function<void(std::string)> failing("fail");
  const auto thrown = [&](const std::string& how) {
    try {
      failing.decode(calls_.dispatch(failing.encode(how), context_));
    } catch (const error& failed) {
      return std::pair(failed.code(), std::string(failed.what()));
    }
    return std::pair(std::error_code(), std::string());
  };
  EXPECT_EQ(thrown("ours").first, errc::stale_region);
  EXPECT_NE(thrown("ours").second.find("reading"), std::string::npos);
  EXPECT_EQ(thrown("system").first, std::errc::permission_denied);
  EXPECT_NE(thrown("system").second.find("opening"), std::string::npos);
  EXPECT_EQ(thrown("memory").first, errc::no_memory);
  EXPECT_EQ(thrown("number").first, errc::unexpected);
  EXPECT_EQ(thrown("some words").first, errc::unexpected);
  EXPECT_NE(thrown("some words").second.find("calling fail: some words"), std::string::npos);
}

TEST_F(CallTable, CutsLongTextsOfExceptionsWhereACharacterEnds) {
  for (const std::size_t before : {0U, 1U, 2U, 3U}) {
    std::string text(before, 'a');
    while (text.size() < 3000) text += "\xe2\x82\xac";  // three bytes
    calls_.add("long" + std::to_string(before), [text] { throw std::runtime_error(text); });
    const remote_function<void()> called("long" + std::to_string(before));
    const message answer = calls_.dispatch(called.encode(), context_);
    EXPECT_LE(answer.size(), 1024U + 20U);
    EXPECT_GE(answer.size(), 1020U);
    try {
      called.decode(answer);
      ADD_FAILURE() << "it has thrown";
    } catch (const error& failed) {
      EXPECT_EQ(failed.code(), errc::unexpected);
      EXPECT_EQ(std::string_view(failed.what()).find('?'), std::string_view::npos);
    }
  }
}

TEST_F(CallTable, SendsTextsOfExceptionsThatAreNotUtf8) {
  calls_.add("latin", [] { throw std::runtime_error("gr\xfcn\xff\xc3"); });
  const remote_function<void()> called("latin");
  try {
    called.decode(calls_.dispatch(called.encode(), context_));
    FAIL() << "it has thrown";
  } catch (const error& failed) {
    EXPECT_NE(std::string(failed.what()).find("gr?n??"), std::string::npos) << failed.what();
  }
}

TEST_F(CallTable, SaysThatAResultIsTooLarge) {
  const std::string text(1000, 'x');
  const auto large = call<std::string(std::string, std::uint64_t)>("repeat", text, 1048U);
  EXPECT_EQ(large.value.value_or("").size(), 1'048'000U) << large.text;
  const auto larger = call<std::string(std::string, std::uint64_t)>("repeat", text, 1049U);
  EXPECT_EQ(larger.code, errc::no_space);
  EXPECT_NE(larger.text.find("1 MiB"), std::string::npos) << larger.text;
  EXPECT_EQ((call<int(int, int)>("add", 40, 2).value), 42) << "the table lives on";
}

TEST_F(CallTable, SaysThatAResultCanNotBeSent) {
  const auto latin = call<std::string(std::string, std::uint64_t)>("repeat", "a", 1U);
  EXPECT_TRUE(latin.value);
  calls_.add("latin", [] { return std::string("\xff"); });
  EXPECT_EQ(call<std::string()>("latin").code, errc::unexpected);
}

TEST_F(CallTable, RefusesArgumentsThatAreTooLarge) {
  const remote_function<std::string(std::string, std::uint64_t)> called("repeat");
  std::error_code ec;
  EXPECT_TRUE(called.encode(std::string(call_writer::max_size, 'x'), 1, ec).empty());
  EXPECT_EQ(ec, errc::no_space);
  EXPECT_TRUE(called.encode("\xff", 1, ec).empty());
  EXPECT_EQ(ec, errc::invalid_argument);
  EXPECT_THROW(called.encode("\xff", 1), error);
  EXPECT_FALSE(called.encode("x", 1, ec).empty());
  EXPECT_FALSE(ec);
}

TEST_F(CallTable, RefusesArgumentsOfOtherTypesThanTheHashSays) {
  const call_function add("add", "(i32,i32)->i32");
  const remote_function<int(int, int)> called("add");
  call_writer wrong[3];
  wrong[0].integer(1).text("2");
  wrong[1].integer(1);
  wrong[2].integer(1).integer(2).integer(3);
  for (const call_writer& each : wrong) {
    const auto ended = ending_of(called, calls_.dispatch(add.encode(each), context_));
    EXPECT_EQ(ended.code, errc::protocol_error) << ended.text;
    EXPECT_NE(ended.text.find("not those of its signature"), std::string::npos) << ended.text;
  }
  EXPECT_EQ(counted_, 0);
}

TEST_F(CallTable, RunsDynamicFunctions) {
  calls_.add_dynamic("sum", "(list<i32>)->i64",
                     [](call_context&, call_reader& arguments, call_writer& result) {
                       std::int64_t sum = 0;
                       for (std::size_t left = arguments.list(); left > 0; --left) {
                         sum += arguments.integer();
                       }
                       arguments.finish();
                       result.integer(sum);
                     });
  const std::vector<int> numbers{1, 2, 39};
  EXPECT_EQ((call<std::int64_t(std::vector<int>)>("sum", numbers).value), 42);

  const call_function sum("sum", "(list<i32>)->i64");
  call_writer arguments;
  arguments.list(1).integer(5);
  const message answer = calls_.dispatch(sum.encode(arguments), context_);
  call_reader result = sum.decode(answer);
  EXPECT_EQ(result.integer(), 5);
  EXPECT_NO_THROW(result.finish());
}

TEST_F(CallTable, TellsWhatDynamicFunctionsDoWrong) {
  const auto ended = [&](std::string_view name, call_table::handler handler) {
    calls_.add_dynamic(name, "(i32)->i32", std::move(handler));
    return call<int(int)>(name, 1).code;
  };
  EXPECT_EQ(ended("silent", [](auto&, auto& from, auto&) { from.integer(); }), errc::unexpected);
  EXPECT_EQ(
      ended("twice", [](auto&, auto& from, auto& to) { to.integer(from.integer()).integer(2); }),
      errc::unexpected);
  EXPECT_EQ(ended("unread", [](auto&, auto&, auto& to) { to.integer(1); }), errc::protocol_error);
  EXPECT_EQ(ended("misread", [](auto&, auto& from, auto& to) { from.text(), to.integer(1); }),
            errc::protocol_error);
  EXPECT_EQ(
      ended("unfinished", [](auto&, auto& from, auto& to) { from.integer(), to.list(2).nil(); }),
      errc::unexpected);
  EXPECT_EQ(ended("other", [](auto&, auto& from, auto& to) { from.integer(), to.text("1"); }),
            errc::protocol_error);
}

TEST_F(CallTable, AnswersEachTruncationOfACall) {
  const remote_function<int(int, int)> called("add");
  const message whole = called.encode(40, 2000);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const message cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_TRUE(ending_of(called, calls_.dispatch(cut, context_)).code) << size;
  }
}

TEST_F(CallTable, AnswersEachFlippedBitOfACall) {
  const remote_function<int(int, int)> called("add");
  const message whole = called.encode(40, 2);
  const std::size_t before_arguments = whole.size() - 2;
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    message flipped = whole;
    flipped[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    const auto ended = ending_of(called, calls_.dispatch(flipped, context_));
    EXPECT_NE(ended.value, 42) << "bit " << bit;
    EXPECT_TRUE(ended.code || bit / 8 >= before_arguments) << "bit " << bit;
  }
}

TEST_F(CallTable, ReadsNoOtherVersionsAndNoPartsBesideTheBody) {
  const remote_function<int(int, int)> called("add");
  for (const std::size_t place : {0U, 1U, 4U, 7U}) {
    message changed = called.encode(40, 2);
    changed[place] = std::byte{9};
    EXPECT_EQ(ending_of(called, calls_.dispatch(changed, context_)).code, errc::protocol_error);
  }
  message answer = calls_.dispatch(called.encode(40, 2), context_);
  answer[0] = std::byte{9};
  EXPECT_EQ(ending_of(called, answer).code, errc::version_mismatch);
  answer[0] = std::byte{1};
  answer[4] = std::byte{1};
  EXPECT_EQ(ending_of(called, answer).code, errc::protocol_error);
}

TEST_F(CallTable, RefusesMoreThanOneMebibyteOfArguments) {
  const remote_function<int(int, int)> called("add");
  message call = called.encode(40, 2);
  call.resize(24 + 3 + call_writer::max_size + 1, std::byte{0xc0});
  const auto ended = ending_of(called, calls_.dispatch(call, context_));
  EXPECT_NE(ended.text.find("1 MiB"), std::string::npos) << ended.text;
}

TEST_F(CallTable, HasTheBytesOfTheDocument) {
  const remote_function<int(int, int)> called("add");
  const message call = called.encode(40, 2);
  const auto hash = call_signature("(i32,i32)->i32").hash();
  std::string hex = "0101030000000000";
  for (const std::uint64_t half : {hash.high, hash.low}) {
    for (int i = 0; i < 8; ++i) hex += test::to_hex(std::array{std::byte(half >> (8 * i))});
  }
  EXPECT_EQ(test::to_hex(call), hex + "6164642802");
  EXPECT_EQ(test::to_hex(calls_.dispatch(call, context_)), "01020000000000002a");
  const remote_function<int()> absent("absent");
  EXPECT_EQ(test::to_hex(calls_.dispatch(absent.encode(), context_)).substr(0, 16),
            "0102020000000000");
}

TEST_F(CallTable, SurvivesEachTruncationAndFlippedBitOfAnswers) {
  const remote_function<int(int, std::string)> called("add");
  const remote_function<int(int, int)> right("add");
  const message answers[]{calls_.dispatch(called.encode(1, "2"), context_),
                          calls_.dispatch(right.encode(40, 2), context_)};
  for (const message& whole : answers) {
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const message cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_EQ(ending_of(right, cut).code, errc::protocol_error) << size;
    }
    for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
      message flipped = whole;
      flipped[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
      EXPECT_NE(ending_of(right, flipped).value, 42) << "bit " << bit;
    }
  }
}

TEST_F(CallTable, Moves) {
  call_table moved = std::move(calls_);
  const remote_function<int(int, int)> called("add");
  EXPECT_EQ(called.decode(moved.dispatch(called.encode(1, 2), context_)), 3);
  calls_ = std::move(moved);
  EXPECT_EQ((call<int(int, int)>("add", 40, 2).value), 42);
}

}  // namespace
}  // namespace ucx::calls
