#include "base/result.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace ucx::detail {
namespace {

result<std::unique_ptr<int>> half_of(int number) {
  if (number % 2 != 0) {
    return failure{errc::invalid_argument, "halving " + std::to_string(number)};
  }
  return std::make_unique<int>(number / 2);
}

result<void> check(int number) {
  const auto half = half_of(number);
  if (!half) return half.why();
  return {};
}

std::string thrown_text(int number) {
  try {
    check(number).or_throw();
  } catch (const error& thrown) {
    EXPECT_EQ(thrown.code(), errc::invalid_argument);
    return thrown.what();
  }
  return "nothing was thrown";
}

TEST(Result, HasTheValue) {
  const auto half = half_of(6);
  ASSERT_TRUE(half);
  EXPECT_EQ(**half, 3);
}

TEST(Result, HasTheFailure) {
  const auto half = half_of(5);
  ASSERT_FALSE(half);
  EXPECT_EQ(half.why().code, errc::invalid_argument);
  EXPECT_EQ(half.why().text, "halving 5");
}

TEST(Result, GivesItsValueAway) {
  std::error_code ec = errc::busy;
  EXPECT_EQ(*half_of(4).or_throw(), 2);
  EXPECT_EQ(*half_of(4).or_tell(ec), 2);
  EXPECT_FALSE(ec);
}

TEST(Result, TellsByACode) {
  std::error_code ec;
  EXPECT_EQ(half_of(3).or_tell(ec), nullptr);
  EXPECT_EQ(ec, errc::invalid_argument);
  const auto otherwise = half_of(3).or_tell(ec, std::make_unique<int>(7));
  EXPECT_EQ(*otherwise, 7);
}

TEST(Result, ThrowsCodeAndText) {
  EXPECT_THROW(static_cast<void>(half_of(3).or_throw()), error);
  EXPECT_EQ(thrown_text(3).find("halving 3: "), 0U);
}

TEST(Result, OfNothingIsDoneOrFailed) {
  std::error_code ec = errc::busy;
  check(2).or_tell(ec);
  EXPECT_FALSE(ec);
  check(3).or_tell(ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  EXPECT_NO_THROW(check(2).or_throw());
}

TEST(Result, EndsAPublicFunctionByWhatItsCallerGave) {
  std::error_code ec = errc::busy;
  EXPECT_EQ(*half_of(4).or_end(ec), 2);
  EXPECT_FALSE(ec);
  EXPECT_EQ(*half_of(3).or_end(ec, std::make_unique<int>(7)), 7);
  EXPECT_EQ(ec, errc::invalid_argument);
  check(2).or_end(ec);
  EXPECT_FALSE(ec);
  EXPECT_THROW(static_cast<void>(half_of(3).or_end(throws)), error);
  EXPECT_THROW(check(3).or_end(throws), error);
  EXPECT_EQ(*half_of(4).or_end(throws), 2);
}

TEST(EndWith, MakesATextOnlyToThrow) {
  const auto no_text = []() -> std::string { throw std::logic_error("a text was made"); };
  std::error_code ec;
  end_with(errc::closed, ec, no_text);
  EXPECT_EQ(ec, errc::closed);
  end_with({}, ec, no_text);
  EXPECT_FALSE(ec);
  end_with({}, throws, no_text);
  EXPECT_THROW(end_with(errc::closed, throws, [] { return "closing"; }), error);
}

TEST(Throws, NeverHoldsAnError) {
  EXPECT_THROW(end_with(errc::closed, throws, [] { return "closing"; }), error);
  EXPECT_THROW(static_cast<void>(half_of(3).or_end(throws)), error);
  EXPECT_FALSE(throws);
}

}  // namespace
}  // namespace ucx::detail
