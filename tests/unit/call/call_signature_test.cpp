#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "ucx/access.hpp"
#include "ucx/call_function.hpp"
#include "ucx/tensor.hpp"
#include "ucx/window.hpp"
#include "unit/call/call_examples.hpp"
#include "unit/call/golden_signatures.hpp"

namespace ucx::calls {
namespace {

/// The signature of a C++ function.
template <class Form>
struct signature;
template <class Result, class... Arguments>
struct signature<Result(Arguments...)> {
  static std::string text() { return detail::call_form<Result, Arguments...>::describe(); }
};
template <class Form>
std::string of() {
  return signature<Form>::text();
}

using raw = std::vector<std::byte>;
using words = std::string;
using to_read = window<access::read>;
using to_fill = window<access::write>;

/// What the functions of the golden file are in C++.
std::vector<std::string> made_signatures() {
  return {
      of<void()>(),
      of<int(int, int)>(),
      of<bool(bool)>(),
      of<std::int8_t(std::uint8_t)>(),
      of<std::int16_t(std::uint16_t)>(),
      of<std::int32_t(std::uint32_t)>(),
      of<std::int64_t(std::uint64_t)>(),
      of<float(double)>(),
      of<words(const words&)>(),
      of<words(std::string_view, bool)>(),
      of<raw(raw &&)>(),
      of<void(long, unsigned long)>(),
      of<void(long long, bool)>(),
      of<void(signed char, unsigned char)>(),
      of<void(short, unsigned short, unsigned)>(),
      of<colour(level)>(),
      of<std::vector<double>()>(),
      of<std::vector<std::vector<words>>(std::vector<bool>)>(),
      of<std::array<std::byte, 16>()>(),
      of<std::array<std::array<float, 3>, 2>()>(),
      of<std::optional<int>(std::optional<words>)>(),
      of<std::optional<std::vector<std::optional<int>>>()>(),
      of<std::pair<int, words>()>(),
      of<std::tuple<int>()>(),
      of<std::tuple<bool, std::uint8_t, float, words, raw>()>(),
      of<std::map<words, int>()>(),
      of<std::map<std::uint64_t, words>(std::map<bool, bool>)>(),
      of<std::map<colour, std::vector<point>>()>(),
      of<point(point)>(),
      of<shape(const shape&)>(),
      of<std::vector<shape>(std::map<words, shape>)>(),
      of<raw(std::vector<double>, point)>(),
      of<std::optional<shape>(words, int)>(),
      of<std::pair<point, std::pair<point, point>>()>(),
      of<void(std::tuple<std::pair<int, int>, std::optional<std::pair<int, int>>>)>(),
      of<std::map<words, std::map<words, std::map<words, double>>>()>(),
      of<double(const std::vector<float>&, const std::vector<float>&)>(),
      of<words(int, int, int, int, int, int, int, int)>(),
      of<std::vector<std::pair<words, raw>>(std::vector<words>)>(),
      of<void(words, std::optional<double>, std::array<std::int64_t, 4>)>(),
      of<void(to_read)>(),
      of<std::uint64_t(to_fill, std::uint64_t)>(),
      of<raw(std::vector<double>, point, const to_read&)>(),
      of<void(window<access::read_write>, to_read, to_fill)>(),
      of<buffer(buffer)>(),
      of<bool(std::span<const std::byte>, std::uint64_t)>(),
      of<std::tuple<int, buffer>(std::vector<std::span<std::byte>>, std::optional<buffer>)>(),
      of<double(const tensor_view&)>(),
      of<tensor(tensor, std::map<words, tensor_view>)>(),
  };
}

TEST(CallSignature, IsThatOfTheGoldenFile) {
  const auto made = made_signatures();
  ASSERT_EQ(made.size(), std::size(golden_signatures));
  std::set<std::string> hashes;
  for (std::size_t i = 0; i < made.size(); ++i) {
    const call_signature read(made[i]);
    EXPECT_EQ(made[i], golden_signatures[i].text);
    EXPECT_EQ(to_string(read.hash()), golden_signatures[i].hash) << made[i];
    hashes.insert(to_string(read.hash()));
  }
  EXPECT_EQ(hashes.size(), made.size());
}

TEST(CallSignature, IsThatOfWireTypesAndNotOfNames) {
  EXPECT_EQ(of<long(long)>(), of<long long(long long)>());
  EXPECT_EQ(of<words(const words&)>(), of<words(std::string_view)>());
  EXPECT_EQ((of<std::pair<int, bool>()>()), (of<std::tuple<int, bool>()>()));
  EXPECT_EQ(of<colour(level)>(), of<unsigned char(int)>());
}

TEST(CallSignature, ComparesTexts) {
  EXPECT_EQ(call_signature("()->nil"), call_signature("()->nil"));
  EXPECT_NE(call_signature("()->nil"), call_signature("()->bool"));
}

TEST(CallSignature, OwnsItsText) {
  std::string given = "(i32,list<f64>)->text";
  const call_signature made(given);
  given.assign(given.size(), '?');
  EXPECT_EQ(made.text(), "(i32,list<f64>)->text");
  const remote_procedure<std::string(int, std::vector<double>)> typed("f");
  EXPECT_EQ(typed.untyped().signature().text(), "(i32,list<f64>)->text");
  EXPECT_EQ(typed.untyped().signature(), made);
}

std::error_code outcome_of_text(std::string_view text) {
  std::error_code ec;
  const call_signature made(text, ec);
  EXPECT_TRUE(!ec || made.text().empty()) << "of a text that was refused: " << text;
  return ec;
}

TEST(CallSignature, RefusesWhatDoesNotFollowTheGrammar) {
  const std::string_view wrong[]{"",
                                 "(",
                                 "()",
                                 "()-",
                                 "()->",
                                 "()->nil ",
                                 " ()->nil",
                                 "( )->nil",
                                 "()->void",
                                 "()->int",
                                 "(nil)->nil",
                                 "(,)->nil",
                                 "(i32,)->nil",
                                 "(i32 ,i32)->nil",
                                 "(I32)->nil",
                                 "(i32)->i32)",
                                 "()->list",
                                 "()->list<>",
                                 "()->list<nil>",
                                 "()->list<i32",
                                 "()->list<i32,i32>",
                                 "()->array<i32>",
                                 "()->array<i32,0>",
                                 "()->array<i32,01>",
                                 "()->array<i32,-1>",
                                 "()->array<i32,10000000>",
                                 "()->optional<optional<i32>>",
                                 "()->optional<nil>",
                                 "()->tuple<>",
                                 "()->tuple<i32,>",
                                 "()->map<i32>",
                                 "()->map<f64,i32>",
                                 "()->map<bytes,i32>",
                                 "()->map<list<i32>,i32>",
                                 "()->map<i32,i32,i32>",
                                 "()->point{}",
                                 "()->point{x}",
                                 "()->point{x:}",
                                 "()->point{x:i32,}",
                                 "()->point{x:i32,x:i32}",
                                 "()->point{x:i32,y:i32,x:f64}",
                                 "()->{x:i32}",
                                 "()->1p{x:i32}",
                                 "()->list{x:i32}",
                                 "()->point{1:i32}",
                                 "()->point{x:i32}{y:i32}",
                                 "i32->i32",
                                 "()=>i32",
                                 "(window)->nil",
                                 "(window:)->nil",
                                 "(window:x)->nil",
                                 "(window:wr)->nil",
                                 "(window:rr)->nil",
                                 "(window:r{x:i32})->nil",
                                 "(window{x:i32})->nil",
                                 "(list<window:r>)->nil",
                                 "(optional<window:r>)->nil",
                                 "(p{x:window:r})->nil",
                                 "()->window:r",
                                 "()->p\xc3\xa4{x:i32}"};
  for (const std::string_view each : wrong) {
    EXPECT_EQ(outcome_of_text(each), errc::invalid_argument) << each;
  }
}

TEST(CallSignature, KeepsWordsForLaterVersions) {
  for (const std::string_view each : {"(any)->nil", "()->list<any>", "(any{x:i32})->nil",
                                      "(tensor<f32>)->nil", "()->buffer<u8>"}) {
    EXPECT_EQ(outcome_of_text(each), errc::not_supported) << each;
  }
}

TEST(CallSignature, HasMemoryInAnyPlaceButKeys) {
  for (const std::string_view each : {"(buffer)->buffer", "(list<f64>,map<text,buffer>)->bytes",
                                      "(p{x:optional<tensor>})->tuple<tensor,buffer>"}) {
    EXPECT_EQ(outcome_of_text(each), std::error_code()) << each;
  }
  for (const std::string_view each :
       {"(map<buffer,i32>)->nil", "(buffer{x:i32})->nil", "(tensor{x:i32})->nil",
        "(map<tensor,i32>)->nil", "()->buffers"}) {
    EXPECT_EQ(outcome_of_text(each), errc::invalid_argument) << each;
  }
}

TEST(CallSignature, SaysWhatIsWrongAndWhere) {
  try {
    const call_signature made("(i32,int)->nil");
    FAIL() << "it was read: " << made.text();
  } catch (const error& failed) {
    EXPECT_NE(std::string(failed.what()).find("at byte 5: there is no type \"int\""),
              std::string::npos)
        << failed.what();
  }
}

/// Returns a signature whose result has so many lists within each other.
std::string lists(std::size_t depth) {
  std::string text = "()->";
  for (std::size_t i = 0; i < depth; ++i) text += i % 2 == 0 ? "list<" : "optional<list<";
  text += "i32";
  for (std::size_t i = depth; i-- > 0;) text += i % 2 == 0 ? ">" : ">>";
  return text;
}

std::string windows(std::size_t count) {
  std::string text = "window:rw";
  for (std::size_t i = 1; i < count; ++i) text += ",window:r";
  return text;
}

TEST(CallSignature, HoldsItsLimits) {
  EXPECT_FALSE(outcome_of_text(lists(16)));
  EXPECT_EQ(outcome_of_text(lists(17)), errc::invalid_argument);
  EXPECT_FALSE(outcome_of_text("()->nilable{x:i8}"));
  EXPECT_FALSE(outcome_of_text("(" + windows(8) + ")->nil"));
  EXPECT_EQ(outcome_of_text("(" + windows(9) + ")->nil"), errc::invalid_argument);
  EXPECT_FALSE(outcome_of_text("()->p{x:q{x:i8},y:q{x:i8}}")) << "fields of several records";
  std::string long_text = "(";
  while (long_text.size() < call_signature::max_size - 12) long_text += "bool,";
  long_text += "bool)->nil";
  const std::string name(call_signature::max_size - 10, 'n');
  EXPECT_FALSE(outcome_of_text("()->" + name + "{x:i8}"));
  EXPECT_EQ(outcome_of_text("()->n" + name + "{x:i8}"), errc::invalid_argument);
  EXPECT_FALSE(outcome_of_text(long_text));
}

TEST(CallSignature, SurvivesEachTruncationAndFlippedBit) {
  const std::string intact = of<std::map<std::string, shape>(std::array<int, 3>, point)>();
  EXPECT_FALSE(outcome_of_text(intact));
  for (std::size_t size = 0; size < intact.size(); ++size) {
    EXPECT_TRUE(outcome_of_text(intact.substr(0, size))) << size;
  }
  for (std::size_t bit = 0; bit < 8 * intact.size(); ++bit) {
    std::string flipped = intact;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    std::error_code ec;
    const call_signature read(flipped, ec);
    EXPECT_NE(read.hash(), call_signature(intact).hash()) << flipped;
  }
}

}  // namespace
}  // namespace ucx::calls
