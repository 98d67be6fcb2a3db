#include "ucx/completion_handler.hpp"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ucx/error.hpp"

namespace ucx {
namespace {

/// Counts its calls, and its live copies, where the test can see them; `Size` bytes more.
template <std::size_t Size>
struct counted {
  counted(int& calls, int& alive) : calls_(&calls), alive_(&alive) { ++*alive_; }
  counted(counted&& other) noexcept : calls_(other.calls_), alive_(other.alive_) { ++*alive_; }
  counted& operator=(counted&&) = delete;
  ~counted() { --*alive_; }
  void operator()() {
    ++*calls_;
    where = this;
  }

  int* calls_;
  int* alive_;
  static inline const void* where = nullptr;  // of the last call
  std::array<char, Size> ballast_{};
};

using small = counted<1>;
using large = counted<1000>;

template <class Function>
bool is_inside(const void* function, const move_only_handler<>& handler) {
  const auto at = reinterpret_cast<std::uintptr_t>(function);
  const auto begin = reinterpret_cast<std::uintptr_t>(&handler);
  return at >= begin && at + sizeof(Function) <= begin + sizeof handler;
}

TEST(MoveOnlyHandler, IsEmptyByDefault) {
  move_only_handler<> none;
  EXPECT_FALSE(none);
  none.reset();
  move_only_handler<> other = std::move(none);
  EXPECT_FALSE(other);
}

TEST(MoveOnlyHandler, CallsAsOftenAsItIsCalled) {
  int calls = 0;
  move_only_handler<> handler([&calls] { ++calls; });
  EXPECT_TRUE(handler);
  EXPECT_EQ(calls, 0);
  handler();
  handler();
  EXPECT_EQ(calls, 2);
}

TEST(MoveOnlyHandler, HoldsSmallFunctionsInsideAndLargeOnesOutside) {
  int calls = 0;
  int alive = 0;
  move_only_handler<> little(small(calls, alive));
  little();
  EXPECT_TRUE(is_inside<small>(small::where, little));
  move_only_handler<> big(large(calls, alive));
  big();
  EXPECT_FALSE(is_inside<large>(large::where, big));
  EXPECT_EQ(calls, 2);
}

template <class Function>
class MoveOnlyHandlerOf : public testing::Test {};
using sizes = testing::Types<small, large>;
TYPED_TEST_SUITE(MoveOnlyHandlerOf, sizes);

TYPED_TEST(MoveOnlyHandlerOf, DestroysItsFunctionOnce) {
  int calls = 0;
  int alive = 0;
  {
    move_only_handler<> handler(TypeParam(calls, alive));
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(calls, 0);
}

TYPED_TEST(MoveOnlyHandlerOf, MovesItsFunctionAlong) {
  int calls = 0;
  int alive = 0;
  move_only_handler<> first(TypeParam(calls, alive));
  move_only_handler<> second(std::move(first));
  EXPECT_FALSE(first);
  EXPECT_EQ(alive, 1);
  second();
  EXPECT_EQ(calls, 1);
}

TYPED_TEST(MoveOnlyHandlerOf, AssignmentDestroysWhatWasHeld) {
  int calls = 0;
  int alive = 0;
  int others_alive = 0;
  move_only_handler<> first(TypeParam(calls, others_alive));
  first = move_only_handler<>(TypeParam(calls, alive));
  EXPECT_EQ(others_alive, 0);
  EXPECT_EQ(alive, 1);
  auto& same = first;
  first = std::move(same);
  EXPECT_TRUE(first);
  EXPECT_EQ(alive, 1);
  first = {};
  EXPECT_FALSE(first);
  EXPECT_EQ(alive, 0);
}

TYPED_TEST(MoveOnlyHandlerOf, ResetDestroysAtOnce) {
  int calls = 0;
  int alive = 0;
  move_only_handler<> handler(TypeParam(calls, alive));
  handler.reset();
  EXPECT_FALSE(handler);
  EXPECT_EQ(alive, 0);
  handler.reset();
  EXPECT_EQ(alive, 0);
}

TEST(MoveOnlyHandler, TakesFunctionsThatOnlyMove) {
  auto owned = std::make_unique<int>(7);
  int seen = 0;
  move_only_handler<> handler([owned = std::move(owned), &seen] { seen = *owned; });
  handler();
  EXPECT_EQ(seen, 7);
}

TEST(MoveOnlyHandler, KeepsFunctionsWhoseMoveMayThrowOutside) {
  struct throwing {
    explicit throwing(const void*& where) : where_(&where) {}
    throwing(const throwing& other) noexcept(false) : where_(other.where_) {}
    void operator()() { *where_ = this; }
    const void** where_;
  };
  const void* before = nullptr;
  move_only_handler<> first{throwing(before)};
  first();
  EXPECT_FALSE(is_inside<throwing>(before, first));
  const void* const made_at = before;
  move_only_handler<> second = std::move(first);
  second();
  EXPECT_EQ(before, made_at) << "moving the handler moved the function";
}

TEST(MoveOnlyHandler, PassesArgumentsThrough) {
  std::vector<std::string> seen;
  move_only_handler<std::string, int&, std::unique_ptr<int>> handler(
      [&seen](std::string text, int& counter, std::unique_ptr<int> owned) {
        seen.push_back(std::move(text) + std::to_string(*owned));
        ++counter;
      });
  int counter = 0;
  handler("a", counter, std::make_unique<int>(1));
  handler("b", counter, std::make_unique<int>(2));
  EXPECT_EQ(seen, (std::vector<std::string>{"a1", "b2"}));
  EXPECT_EQ(counter, 2);
}

TEST(MoveOnlyHandler, TakesPlainFunctionsAndStdFunction) {
  static int calls;
  calls = 0;
  move_only_handler<> plain(+[] { ++calls; });
  plain();
  const std::function<void()> general([] { ++calls; });
  move_only_handler<> wrapped(general);
  wrapped();
  EXPECT_EQ(calls, 2);
}

TEST(MoveOnlyHandler, LetsAnExceptionOut) {
  move_only_handler<> handler([] { throw error(errc::busy, "in a handler"); });
  EXPECT_THROW(handler(), error);
  EXPECT_TRUE(handler);
}

TEST(MoveOnlyHandler, IsNotMadeOfWhatCanNotBeCalled) {
  static_assert(!std::is_constructible_v<move_only_handler<>, int>);
  static_assert(!std::is_constructible_v<move_only_handler<>, void (*)(int)>);
  static_assert(!std::is_copy_constructible_v<move_only_handler<>>);
  static_assert(std::is_nothrow_move_constructible_v<move_only_handler<>>);
}

TEST(CompletionHandler, GetsTheErrorCode) {
  std::error_code seen;
  completion_handler handler([&seen](std::error_code ec) { seen = ec; });
  handler(errc::timed_out);
  EXPECT_EQ(seen, errc::timed_out);
}

TEST(MoveOnlyHandler, MadeOfNothingIsEmpty) {
  EXPECT_FALSE(move_only_handler<>(std::function<void()>()));
  void (*none)() = nullptr;
  EXPECT_FALSE((move_only_handler<>(none)));
  EXPECT_FALSE(completion_handler(std::function<void(std::error_code)>()));
  EXPECT_TRUE(move_only_handler<>(std::function<void()>([] {})));
  EXPECT_TRUE((move_only_handler<>([] {})));
}

}  // namespace
}  // namespace ucx
