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
#include <thread>
#include <utility>
#include <vector>

#include "base/name.hpp"
#include "support/bytes/hex.hpp"
#include "unit/call/call_examples.hpp"

namespace ucx::calls {
namespace {

using test::from_hex;
using wire_call = std::vector<std::byte>;

/// How a call ended at its caller.
template <class Result>
struct ending {
  std::optional<Result> value;
  std::error_code code = {};
  std::string text = {};
  std::error_code cause = {};
};

template <class Result, class... Arguments>
ending<Result> ending_of(const remote_procedure<Result(Arguments...)>& called,
                         const wire_call& answer) {
  std::error_code ec;
  const Result value = called.decode(answer, ec);
  try {
    EXPECT_EQ(called.decode(answer), value);
    EXPECT_FALSE(ec);
    return {value};
  } catch (const error& failed) {
    EXPECT_EQ(failed.code(), ec) << failed.what();
    return {{}, ec, failed.what(), failed.cause()};
  }
}

/// Bytes of the heads of calls and answers that say nothing about the outcome: flags that may be
/// ignored, the number of the call, its time, and what is kept for later versions.
bool is_harmless(std::size_t place, bool is_answer) {
  if (place == 4 || place == 5 || (place >= 8 && place < 16)) return true;
  return is_answer ? place >= 20 && place < 24
                   : (place >= 16 && place < 24) || (place >= 44 && place < 48);
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
    const remote_procedure<Form> called(name);
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
  const remote_procedure<void(int)> nothing("nothing");
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
      "none", "(any)->nil", [](auto&, auto&, auto&) {}, ec);
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
  EXPECT_EQ(other.code, errc::signature_differs);
  EXPECT_NE(other.text.find("(i32,text)->i32"), std::string::npos) << other.text;
  EXPECT_NE(other.text.find("(i32,i32)->i32"), std::string::npos) << other.text;
  EXPECT_EQ((call<std::int64_t(int, int)>("add", 1, 2).code), errc::signature_differs);
}

TEST_F(CallTable, TellsWhatAFunctionThrew) {
  const auto thrown = [&](const std::string& how) {
    const auto ended = call<int(std::string)>("fail/2", how);
    EXPECT_EQ(ended.code, errc::call_failed) << ended.text;
    return ended;
  };
  calls_.add("fail/2", [](const std::string& how) {
    fail(how);
    return 1;
  });
  EXPECT_EQ(thrown("ours").cause, errc::stale_region);
  EXPECT_NE(thrown("ours").text.find("calling fail/2: reading"), std::string::npos);
  EXPECT_EQ(thrown("system").cause, std::errc::permission_denied);
  EXPECT_NE(thrown("system").text.find("opening"), std::string::npos);
  EXPECT_EQ(thrown("memory").cause, errc::no_memory);
  EXPECT_FALSE(thrown("number").cause);
  EXPECT_FALSE(thrown("some words").cause);
  EXPECT_NE(thrown("some words").text.find("calling fail/2: some words"), std::string::npos);
}

TEST_F(CallTable, TellsCodesOfFunctionsFromItsOwn) {
  for (const errc each : {errc::no_such_name, errc::signature_differs, errc::busy,
                          errc::permission_denied, errc::protocol_error}) {
    const std::string name = "code" + std::to_string(static_cast<int>(each));
    calls_.add(name, [each]() -> int { throw error(each, "within"); });
    const auto ended = call<int()>(name);
    EXPECT_EQ(ended.code, errc::call_failed);
    EXPECT_EQ(ended.cause, each);
  }
  EXPECT_FALSE(call<int()>("absent").cause);
}

TEST_F(CallTable, CutsLongTextsOfExceptionsWhereACharacterEnds) {
  for (const std::size_t before : {0U, 1U, 2U, 3U}) {
    std::string text(before, 'a');
    while (text.size() < 3000) text += "\xe2\x82\xac";  // three bytes
    calls_.add("long" + std::to_string(before), [text] { throw std::runtime_error(text); });
    const remote_procedure<void()> called("long" + std::to_string(before));
    const wire_call answer = calls_.dispatch(called.encode(), context_);
    EXPECT_LE(answer.size(), 1024U + 32U);
    EXPECT_GE(answer.size(), 1024U + 24U);
    try {
      called.decode(answer);
      ADD_FAILURE() << "it has thrown";
    } catch (const error& failed) {
      EXPECT_EQ(failed.code(), errc::call_failed);
      EXPECT_EQ(std::string_view(failed.what()).find('?'), std::string_view::npos);
    }
  }
}

TEST_F(CallTable, SendsTextsOfExceptionsThatAreNotUtf8) {
  calls_.add("latin", [] { throw std::runtime_error("gr\xfcn\xff\xc3"); });
  const remote_procedure<void()> called("latin");
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
  EXPECT_EQ(larger.code, errc::call_failed);
  EXPECT_NE(larger.text.find("1 MiB"), std::string::npos) << larger.text;
  EXPECT_EQ((call<int(int, int)>("add", 40, 2).value), 42) << "the table lives on";
}

TEST_F(CallTable, SaysThatAResultCanNotBeSent) {
  const auto latin = call<std::string(std::string, std::uint64_t)>("repeat", "a", 1U);
  EXPECT_TRUE(latin.value);
  calls_.add("latin", [] { return std::string("\xff"); });
  EXPECT_EQ(call<std::string()>("latin").code, errc::call_failed);
}

TEST_F(CallTable, RefusesArgumentsThatAreTooLarge) {
  const remote_procedure<std::string(std::string, std::uint64_t)> called("repeat");
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
  const auto counts = [this](call_context&, call_reader&, call_writer& to) {
    to.integer(++counted_);
  };
  calls_.add("typed", [this](int, int) { return ++counted_; });
  calls_.add_dynamic("dynamic", "(i32,i32)->i32", counts);
  call_writer wrong[4];
  wrong[0].integer(1).text("2");
  wrong[1].integer(1);
  wrong[2].integer(1).integer(2).integer(3);
  wrong[3].integer(1).integer(std::int64_t{1} << 40U);
  for (const char* const name : {"typed", "dynamic"}) {
    const call_function untyped(name, "(i32,i32)->i32");
    const remote_procedure<int(int, int)> called(name);
    for (const call_writer& each : wrong) {
      const auto ended = ending_of(called, calls_.dispatch(untyped.encode(each), context_));
      EXPECT_EQ(ended.code, errc::protocol_error) << ended.text;
      EXPECT_NE(ended.text.find("not those of its signature"), std::string::npos) << ended.text;
    }
    EXPECT_EQ(counted_, 0) << name << " has run";
  }
  // The functions count where they run.
  EXPECT_FALSE((call<int(int, int)>("typed", 1, 2).code));
  EXPECT_FALSE((call<int(int, int)>("dynamic", 1, 2).code));
  EXPECT_GE(counted_, 2);
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
  const wire_call answer = calls_.dispatch(sum.encode(arguments), context_);
  call_reader result = sum.decode(answer);
  EXPECT_EQ(result.integer(), 5);
  EXPECT_NO_THROW(result.finish());
}

TEST_F(CallTable, TellsWhatDynamicFunctionsDoWrong) {
  const auto ended = [&](std::string_view name, call_table::handler handler) {
    calls_.add_dynamic(name, "(i32)->i32", std::move(handler));
    return call<int(int)>(name, 1);
  };
  const ending<int> wrong[]{
      ended("silent", [](auto&, auto& from, auto&) { from.integer(); }),
      ended("twice", [](auto&, auto& from, auto& to) { to.integer(from.integer()).integer(2); }),
      ended("misread", [](auto&, auto& from, auto& to) { from.text(), to.integer(1); }),
      ended("unfinished", [](auto&, auto& from, auto& to) { from.integer(), to.list(2).nil(); }),
      ended("other", [](auto&, auto& from, auto& to) { from.integer(), to.text("1"); }),
      ended("nothing", [](auto&, auto&, auto& to) { to.nil(); })};
  for (const ending<int>& each : wrong) EXPECT_EQ(each.code, errc::call_failed) << each.text;
  EXPECT_NE(wrong[4].text.find("not that of its signature"), std::string::npos) << wrong[4].text;
  EXPECT_EQ(ended("unread", [](auto&, auto&, auto& to) { to.integer(7); }).value, 7);
}

TEST_F(CallTable, ComparesArgumentsOfDynamicFunctionsWithEachType) {
  const std::string_view signature =
      "(bool,i8,i16,i32,i64,u8,u16,u32,u64,f32,f64,text,bytes,list<i8>,array<i8,2>,optional<i8>,"
      "tuple<i8,text>,map<text,i8>,point{x:f64,y:f64})->nil";
  calls_.add_dynamic("all", signature, [](auto&, auto&, auto& to) { to.nil(); });
  const call_function all("all", signature);
  // Writes the arguments, of which the one at `place` is another.
  const auto outcome = [&](std::size_t place, bool is_text) {
    call_writer to;
    const auto other = [&](std::size_t at) {
      if (at != place) return false;
      is_text ? to.text("x") : to.list(3).integer(1).integer(2).integer(1000);
      return true;
    };
    if (!other(0)) to.boolean(true);
    for (std::size_t i = 1; i < 9; ++i) {
      if (!other(i)) to.integer(100);
    }
    if (!other(9)) to.float32(1);
    if (!other(10)) to.float64(1);
    if (!other(11)) to.text("t");
    if (!other(12)) to.bytes(from_hex("00"));
    if (!other(13)) to.list(2).integer(-1).integer(1);
    if (!other(14)) to.list(2).integer(-1).integer(1);
    if (!other(15)) to.nil();
    if (!other(16)) to.list(2).integer(1).text("t");
    if (!other(17)) to.map(1).text("k").integer(1);
    if (!other(18)) to.list(2).float64(1).float64(2);
    std::error_code ec;
    const wire_call answer = calls_.dispatch(all.encode(to), context_);
    all.decode(answer, ec);
    return ec;
  };
  constexpr std::size_t count = 19;
  EXPECT_FALSE(outcome(count, true));
  for (std::size_t place = 0; place < count; ++place) {
    const bool is_text = place == 11;
    EXPECT_EQ(outcome(place, !is_text), errc::protocol_error) << place;
    EXPECT_EQ(outcome(place, false), errc::protocol_error) << place;
  }
}

TEST_F(CallTable, AnswersEachTruncationOfACall) {
  const remote_procedure<int(int, int)> called("add");
  const wire_call whole = called.encode(40, 2000);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const wire_call cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_TRUE(ending_of(called, calls_.dispatch(cut, context_)).code) << size;
  }
}

TEST_F(CallTable, AnswersEachFlippedBitOfACall) {
  const remote_procedure<int(int, int)> called("add");
  const wire_call whole = called.encode(40, 2);
  const std::size_t before_arguments = whole.size() - 2;
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    wire_call flipped = whole;
    flipped[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    const auto ended = ending_of(called, calls_.dispatch(flipped, context_));
    if (is_harmless(bit / 8, false)) {
      EXPECT_EQ(ended.value, 42) << "bit " << bit;
      continue;
    }
    EXPECT_NE(ended.value, 42) << "bit " << bit;
    EXPECT_TRUE(ended.code || bit / 8 >= before_arguments) << "bit " << bit;
  }
}

TEST_F(CallTable, SaysWhatOfLaterVersionsItDoesNotKnow) {
  const remote_procedure<int(int, int)> called("add");
  const auto ended = [&](std::size_t place, unsigned value) {
    wire_call changed = called.encode(40, 2);
    changed[place] = static_cast<std::byte>(value);
    return ending_of(called, calls_.dispatch(changed, context_));
  };
  EXPECT_EQ(ended(0, 9).code, errc::version_mismatch) << "another version";
  EXPECT_NE(ended(0, 9).text.find("it is of version 9"), std::string::npos);
  EXPECT_EQ(ended(1, 9).code, errc::not_supported) << "a kind";
  EXPECT_EQ(ended(7, 1).code, errc::not_supported) << "a flag that has to be known";
  EXPECT_EQ(ended(4, 1).value, 42) << "a flag that may be ignored";
  EXPECT_EQ(ended(42, 1).code, errc::protocol_error) << "a part without a table";
  EXPECT_EQ(calls_.statistics().invalid, 5U);
}

TEST_F(CallTable, SkipsFieldsThatLaterVersionsAddToAHead) {
  const remote_procedure<int(int, int)> called("add");
  wire_call longer = called.encode(40, 2);
  longer.insert(longer.begin() + 48, 8, std::byte{0xff});
  longer[2] = std::byte{56};
  EXPECT_EQ(ending_of(called, calls_.dispatch(longer, context_)).value, 42);
  wire_call answer = calls_.dispatch(called.encode(40, 2), context_);
  answer.insert(answer.begin() + 24, 8, std::byte{0xff});
  answer[2] = std::byte{32};
  EXPECT_EQ(ending_of(called, answer).value, 42);
}

TEST_F(CallTable, ReadsAnswersOfLaterVersions) {
  const remote_procedure<int(int, int)> called("add");
  const wire_call intact = calls_.dispatch(called.encode(40, 2), context_);
  const auto ended = [&](std::size_t place, unsigned value) {
    wire_call changed = intact;
    changed[place] = static_cast<std::byte>(value);
    return ending_of(called, changed).code;
  };
  EXPECT_EQ(ended(0, 9), errc::version_mismatch);
  EXPECT_EQ(ended(1, 1), errc::protocol_error) << "a call";
  EXPECT_EQ(ended(7, 1), errc::not_supported);
  EXPECT_EQ(ended(18, 1), errc::protocol_error) << "a part without a table";
  // A failure that only later versions know, with a value more.
  wire_call failed = calls_.dispatch(remote_procedure<int()>("absent").encode(), context_);
  failed[16] = std::byte{200};
  failed.push_back(std::byte{1});
  const auto unknown = ending_of(called, failed);
  EXPECT_EQ(unknown.code, errc::unexpected);
  EXPECT_NE(unknown.text.find("there is no function of this name"), std::string::npos);
}

TEST_F(CallTable, RefusesMoreThanOneMebibyteOfArguments) {
  const remote_procedure<int(int, int)> called("add");
  wire_call call = called.encode(40, 2);
  call.resize(48 + 3 + call_writer::max_size + 1, std::byte{0xc0});
  const auto ended = ending_of(called, calls_.dispatch(call, context_));
  EXPECT_NE(ended.text.find("1 MiB"), std::string::npos) << ended.text;
}

TEST_F(CallTable, HasTheBytesOfTheDocument) {
  const remote_procedure<int(int, int)> called("add");
  const wire_call call = called.encode(40, 2);
  const auto hash = call_signature("(i32,i32)->i32").hash();
  std::string hex =
      "0101300000000000"
      "0000000000000000"
      "0000000000000000";
  for (const std::uint64_t half : {hash.high, hash.low}) {
    for (int i = 0; i < 8; ++i) hex += test::to_hex(std::array{std::byte(half >> (8 * i))});
  }
  EXPECT_EQ(test::to_hex(call), hex +
                                    "0300000000000000"
                                    "6164642802");
  EXPECT_EQ(test::to_hex(calls_.dispatch(call, context_)),
            "0102180000000000"
            "0000000000000000"
            "0000000000000000"
            "2a");
  const remote_procedure<int()> absent("absent");
  EXPECT_EQ(test::to_hex(calls_.dispatch(absent.encode(), context_)).substr(0, 48),
            "0102180000000000"
            "0000000000000000"
            "0200000000000000");
}

TEST_F(CallTable, RefusesCallsThatThePredicateNames) {
  calls_.refuse([](const call_context& context, std::string_view name) {
    return name == "add" && context.identity.token.empty();
  });
  const auto refused = call<int(int, int)>("add", 40, 2);
  EXPECT_EQ(refused.code, errc::permission_denied) << refused.text;
  EXPECT_EQ((call<double(double, double)>("add/2", 0.5, 1.0).value), 1.5);
  context_.identity.token = "build";
  EXPECT_EQ((call<int(int, int)>("add", 40, 2).value), 42);
  context_.identity.token.clear();
  calls_.refuse({});
  EXPECT_EQ((call<int(int, int)>("add", 40, 2).value), 42);
}

TEST_F(CallTable, CountsCallsAndTellsOfFailures) {
  std::vector<std::string> told;
  calls_.observe([&](const call_failure_report& report) {
    told.push_back(std::string(report.function) + ": " + report.code.message());
    EXPECT_EQ(&report.context, &context_);
  });
  const auto once = [&](const wire_call& call) { calls_.dispatch(call, context_); };
  once(remote_procedure<int(int, int)>("add").encode(1, 2));
  once(remote_procedure<void(std::string)>("fail").encode("words"));
  once(remote_procedure<int()>("absent").encode());
  once({});
  calls_.refuse([](auto&, auto) { return true; });
  once(remote_procedure<int(int, int)>("add").encode(1, 2));
  EXPECT_EQ(calls_.statistics(),
            (call_statistics{.done = 1, .failed = 1, .refused = 1, .invalid = 2}));
  const auto text = [](errc code) { return make_error_code(code).message(); };
  EXPECT_EQ(told, (std::vector<std::string>{
                      "fail: " + text(errc::call_failed), "absent: " + text(errc::no_such_name),
                      ": " + text(errc::protocol_error), "add: " + text(errc::permission_denied)}));
}

TEST_F(CallTable, TakesFunctionsWhileOthersRun) {
  calls_.add("grow", [this](const std::string& name) {
    calls_.add(name, [] { return 1; });
    return calls_.dispatch(remote_procedure<int()>(name).encode(), context_).size();
  });
  EXPECT_EQ(call<std::size_t(std::string)>("grow", "inner").value, 25U);
  EXPECT_EQ(call<int()>("inner").value, 1);
  const remote_procedure<int(int, int)> add("add");
  std::thread caller([&] {
    call_context context;
    for (int i = 0; i < 500; ++i) {
      const int sum = add.decode(calls_.dispatch(add.encode(i, 1), context));
      if (sum != i + 1) ADD_FAILURE() << sum;
    }
  });
  for (int i = 0; i < 100; ++i) calls_.add("more" + std::to_string(i), [] {});
  caller.join();
}

TEST_F(CallTable, SurvivesEachTruncationAndFlippedBitOfAnswers) {
  const remote_procedure<int(int, std::string)> called("add");
  const remote_procedure<int(int, int)> right("add");
  const wire_call answers[]{calls_.dispatch(called.encode(1, "2"), context_),
                            calls_.dispatch(right.encode(40, 2), context_)};
  for (const wire_call& whole : answers) {
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const wire_call cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_EQ(ending_of(right, cut).code, errc::protocol_error) << size;
    }
    for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
      if (is_harmless(bit / 8, true)) continue;
      wire_call flipped = whole;
      flipped[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
      EXPECT_NE(ending_of(right, flipped).value, 42) << "bit " << bit;
    }
  }
}

TEST_F(CallTable, Moves) {
  call_table moved = std::move(calls_);
  const remote_procedure<int(int, int)> called("add");
  EXPECT_EQ(called.decode(moved.dispatch(called.encode(1, 2), context_)), 3);
  calls_ = std::move(moved);
  EXPECT_EQ((call<int(int, int)>("add", 40, 2).value), 42);
}

}  // namespace
}  // namespace ucx::calls
