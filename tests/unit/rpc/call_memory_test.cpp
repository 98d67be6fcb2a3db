// Memory beside calls and their results, between two simulated processes.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/fake_ucp/watched_memory.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "ucx/memory_resources.hpp"
#include "ucx/rpc.hpp"

namespace ucx::calls {
namespace {

using bytes = std::vector<std::byte>;
using constant = std::span<const std::byte>;

/// Notes what was taken, and what of it is left.
class noting_resource final : public std::pmr::memory_resource {
 public:
  bool has(constant wanted) const { return wanted.data() == block_ && wanted.size() == size_; }
  std::size_t taken = 0;
  int left = 0;

 private:
  void* do_allocate(std::size_t size, std::size_t alignment) override {
    void* const made = std::pmr::new_delete_resource()->allocate(size, alignment);
    block_ = static_cast<std::byte*>(made);
    size_ = size;
    taken += size;
    ++left;
    return made;
  }
  void do_deallocate(void* block, std::size_t size, std::size_t alignment) override {
    std::pmr::new_delete_resource()->deallocate(block, size, alignment);
    --left;
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  const std::byte* block_ = nullptr;
  std::size_t size_ = 0;
};

std::shared_ptr<const memory_resources> resources_of(std::pmr::memory_resource& host) {
  auto made = std::make_shared<memory_resources>();
  made->add(memory_kind::host, host);
  return made;
}

buffer filled(std::size_t size, std::uint64_t seed) {
  buffer made(size);
  test::fill_pattern(made.bytes(), seed);
  return made;
}

class CallMemory : public ::testing::Test {
 protected:
  CallMemory() {
    calls_.add("same", [this](constant value, std::uint64_t seed) {
      ++runs_;
      return test::holds_pattern(value, seed);
    });
    calls_.add("echo", [this](buffer value) {
      ++runs_;
      return value;
    });
    calls_.add("make", [](std::uint64_t size) { return filled(size, 3); });
    calls_.add("wait", [this](call_context& call, constant) { waiting_ = call.defer(); });
  }
  ~CallMemory() override {
    waiting_ = late_answer();
    test::watched = {};
  }

  void serve(call_server_options options = {}) {
    serves_ = call_server(both_.receiver(), calls_, std::move(options));
  }
  bool until(const std::function<bool()>& done) { return both_.network().run_until(done); }
  template <class Result>
  std::error_code outcome(typed_call<Result>& call) {
    std::error_code ec;
    call.result(ec);
    return ec;
  }

  test::simulated_messages both_;
  int runs_ = 0;
  late_answer waiting_;
  call_table calls_;
  call_server serves_;
  call_channel peer_{both_.sender};
};

TEST_F(CallMemory, GoesAndComesInEachSize) {
  serve();
  for (const std::size_t size : test::message_sizes) {
    const bytes sent = test::pattern(size, size);
    EXPECT_TRUE(peer_.call<bool>("same", constant(sent), std::uint64_t{size})) << size;
    const buffer came = peer_.call<buffer>("echo", constant(sent));
    EXPECT_EQ(came.size(), size);
    EXPECT_TRUE(test::holds_pattern(came.bytes(), size)) << size;
  }
  EXPECT_EQ(serves_.under_way(), 0U);
  EXPECT_EQ(peer_.under_way(), 0U);
}

TEST_F(CallMemory, LeavesFromWhereItLies) {
  serve();
  const bytes sent = test::pattern(5U << 20U, 1);
  test::watched = {.bytes = sent};
  EXPECT_TRUE(peer_.call<bool>("same", constant(sent), std::uint64_t{1}));
  EXPECT_EQ(test::watched.sent_in_place, sent.size()) << "none of it was copied before";
}

TEST_F(CallMemory, OfAResultLeavesFromWhereItLies) {
  const bytes kept = test::pattern(5U << 20U, 1);
  calls_.add("show", [&kept] {
    bytes* const own = new bytes(kept);  // the buffer's from here on
    return buffer(std::span(*own), [own](std::span<std::byte>) { delete own; });
  });
  calls_.add("shown", [](buffer value) {
    test::watched = {.bytes = std::as_const(value).bytes()};
    return value;
  });
  serve();
  EXPECT_TRUE(test::holds_pattern(peer_.call<buffer>("show").bytes(), 1));
  EXPECT_TRUE(test::holds_pattern(peer_.call<buffer>("shown", constant(kept)).bytes(), 1));
  EXPECT_EQ(test::watched.sent_in_place, kept.size());
}

TEST_F(CallMemory, LandsInTheResourceOfTheFunction) {
  noting_resource noted;
  bool is_there = false;
  calls_.add("land",
             [&](constant value) {
               is_there = noted.has(value);
               return test::holds_pattern(value, 1);
             },
             {.memory = {.resources = resources_of(noted)}});
  serve();
  for (const std::size_t size : {1000U, 300'000U}) {
    const bytes sent = test::pattern(size, 1);
    is_there = false;
    EXPECT_TRUE(peer_.call<bool>("land", constant(sent))) << size;
    EXPECT_TRUE(is_there) << size;
  }
  EXPECT_EQ(noted.taken, 301'000U) << "once for each call";
  EXPECT_EQ(noted.left, 0);
}

TEST_F(CallMemory, OfAResultLandsInTheResourceOfTheCaller) {
  serve();
  noting_resource noted;
  const call_options options{.memory = {.resources = resources_of(noted)}};
  for (const std::size_t size : {1000U, 300'000U}) {
    const buffer came = peer_.call<buffer>(options, "make", std::uint64_t{size});
    EXPECT_TRUE(noted.has(came.bytes())) << size;
    EXPECT_TRUE(test::holds_pattern(came.bytes(), 3)) << size;
  }
  EXPECT_EQ(noted.left, 0);
}

TEST_F(CallMemory, NeedsAResourceOfItsKind) {
  std::error_code ec;
  const call_memory of_device{.kind = memory_kind::cuda};
  calls_.add(
      "no", [](constant) {}, {.memory = of_device}, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  serve();
  auto asked =
      peer_.start_call<buffer>(call_options{.memory = of_device}, "make", std::uint64_t{1});
  EXPECT_EQ(outcome(asked), errc::invalid_argument);
}

TEST_F(CallMemory, GoesInEightPartsInAnyPlace) {
  using row = std::vector<constant>;
  calls_.add("sizes", [](const row& each, std::optional<buffer> last) {
    std::vector<std::uint64_t> made;
    for (const constant one : each)
      made.push_back(test::holds_pattern(one, one.size()) ? one.size() : 9);
    made.push_back(last ? last->size() : 99);
    return made;
  });
  serve();
  std::vector<bytes> all;
  for (const std::size_t size : {0U, 1U, 3000U, 100'000U, 5U, 0U, 70'000U, 2U}) {
    all.push_back(test::pattern(size, size));
  }
  row sent(all.begin(), all.end());
  const std::vector<std::uint64_t> sizes{0, 1, 3000, 100'000, 5, 0, 70'000, 2, 99};
  using found = std::vector<std::uint64_t>;
  EXPECT_EQ(peer_.call<found>("sizes", sent, std::optional<buffer>()), sizes);
  const std::optional<buffer> last(filled(1, 1));
  auto many = peer_.start_call<found>("sizes", sent, last);
  EXPECT_EQ(outcome(many), errc::invalid_argument) << many.description();
  sent.pop_back();
  EXPECT_EQ(peer_.call<found>("sizes", sent, std::optional<buffer>(filled(4, 1))).back(), 4U);
}

TEST_F(CallMemory, OfAResultIsGivenAwayAlsoInATuple) {
  calls_.add("two", [](int number) {
    return std::tuple<int, buffer, buffer>(number, filled(10, 1), filled(200'000, 2));
  });
  serve();
  const auto [number, first, second] = peer_.call<std::tuple<int, buffer, buffer>>("two", 5);
  EXPECT_EQ(number, 5);
  EXPECT_TRUE(test::holds_pattern(first.bytes(), 1));
  EXPECT_TRUE(test::holds_pattern(second.bytes(), 2));
}

TEST_F(CallMemory, IsACoroutinesOwn) {
  calls_.add("later", [this](buffer value) -> call_task<buffer> {
    ++runs_;
    co_return std::move(value);
  });
  serve();
  const bytes sent = test::pattern(300'000, 1);
  EXPECT_TRUE(test::holds_pattern(peer_.call<buffer>("later", constant(sent)).bytes(), 1));
}

TEST_F(CallMemory, GoesByNumberAndWithoutAnswer) {
  serve();
  const call_stub<buffer(buffer)> echo(peer_, "echo");
  EXPECT_TRUE(test::holds_pattern(echo(filled(300'000, 1)).bytes(), 1));
  {
    const bytes gone = test::pattern(300'000, 1);
    peer_.post_call<buffer>("echo", constant(gone));  // a copy
  }
  EXPECT_TRUE(until([&] { return runs_ == 2; }));
}

/// Returns a buffer that tells when it is freed.
buffer telling(std::size_t size, int& freed) {
  auto* const own = new bytes(test::pattern(size, size));  // the buffer's from here on
  return buffer(std::span(*own), [own, &freed](std::span<std::byte>) {
    delete own;
    ++freed;
  });
}

TEST_F(CallMemory, OfATemporaryIsTheCallsUntilItIsDone) {
  serve();
  const call_stub<buffer(buffer)> echo(peer_, "echo");
  for (const std::size_t size : {1000U, 300'000U}) {
    int freed = 0;
    buffer moved = telling(size, freed);
    std::vector<typed_call<buffer>> asked;
    asked.push_back(peer_.start_call<buffer>("echo", telling(size, freed)));
    asked.push_back(peer_.start_call<buffer>("echo", std::move(moved)));
    asked.push_back(echo.start(telling(size, freed)));
    EXPECT_EQ(freed, 0) << size;
    for (typed_call<buffer>& each : asked) {
      EXPECT_TRUE(test::holds_pattern(each.result().bytes(), size)) << size;
    }
    asked.clear();
    both_.settle();
    EXPECT_EQ(freed, 3) << size;
  }
}

TEST_F(CallMemory, OfAResultIsTakenOnce) {
  serve();
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{1000}, std::uint64_t{300'000}}) {
    auto asked = peer_.start_call<buffer>("make", size);
    EXPECT_TRUE(test::holds_pattern(asked.result().bytes(), 3)) << size;
    EXPECT_EQ(outcome(asked), errc::protocol_error) << size;
    call_reader again = static_cast<call_request&>(asked).result();
    EXPECT_TRUE(again.memory().empty());
    EXPECT_FALSE(again.ok()) << "what was taken may be freed";
  }
  auto seen = peer_.start_call<buffer>("make", std::uint64_t{1000});
  for (int i = 0; i < 2; ++i) {
    call_reader from = static_cast<call_request&>(seen).result();
    EXPECT_TRUE(test::holds_pattern(from.memory(), 3)) << "a look takes nothing";
    from.finish();
  }
  EXPECT_EQ(seen.result().size(), 1000U);
}

TEST_F(CallMemory, OfAVariableStaysTheCallers) {
  serve();
  const call_stub<buffer(buffer)> echo(peer_, "echo");
  int freed = 0;
  {
    buffer sent = telling(300'000, freed);
    const buffer& same = sent;
    EXPECT_EQ(peer_.start_call<buffer>("echo", sent).result().size(), 300'000U);
    EXPECT_EQ(peer_.start_call<buffer>("echo", same).result().size(), 300'000U);
    EXPECT_EQ(echo.start(sent).result().size(), 300'000U);
    EXPECT_EQ(peer_.call<buffer>("echo", std::move(sent)).size(), 300'000U);
    EXPECT_TRUE(test::holds_pattern(same.bytes(), 300'000)) << "call() waits, and borrows";
    EXPECT_EQ(freed, 0);
  }
  EXPECT_EQ(freed, 1);
}

TEST_F(CallMemory, IsReadAndWrittenWithoutTypes) {
  calls_.add_dynamic("turn", "(buffer,text)->buffer",
                     [](call_context&, call_reader& from, call_writer& to) {
                       buffer value = from.take_memory();
                       value.bytes()[0] = std::byte(from.text().size());
                       to.memory(std::move(value));
                     });
  calls_.add_dynamic("lend", "()->buffer", [this](call_context&, call_reader&, call_writer& to) {
    to.memory(std::as_bytes(std::span(&runs_, 1)));
  });
  serve();
  call_writer arguments;
  arguments.memory(filled(100'000, 1)).text("abc");
  auto turned = peer_.start_dynamic_call({"turn", "(buffer,text)->buffer"}, arguments);
  call_reader result = turned.result();
  const std::span<std::byte> there = result.memory();
  result.finish();
  ASSERT_EQ(there.size(), 100'000U);
  EXPECT_EQ(there[0], std::byte{3});
  auto lent = peer_.start_dynamic_call({"lend", "()->buffer"}, {});
  std::error_code ec;
  lent.result(ec);
  EXPECT_EQ(ec, errc::call_failed) << "a result owns its memory";
}

TEST_F(CallMemory, IsBoundedAtTheCallee) {
  serve({.max_memory = 300'000});
  const bytes sent = test::pattern(200'000, 1);
  const bytes large(300'001);
  auto refused = peer_.start_call<void>("wait", constant(large));
  EXPECT_EQ(outcome(refused), errc::no_space) << refused.description();
  EXPECT_TRUE(peer_.call<bool>("same", constant(sent), std::uint64_t{1}));
  // What the first one has is the function's when it has returned.
  auto first = peer_.start_call<void>("wait", constant(sent));
  ASSERT_TRUE(until([&] { return static_cast<bool>(waiting_); }));
  EXPECT_TRUE(peer_.call<bool>("same", constant(sent), std::uint64_t{1}));
  waiting_.send(call_writer().nil());
  EXPECT_EQ(outcome(first), std::error_code());
}

TEST_F(CallMemory, IsBoundedTogetherForEachConnection) {
  serve({.max_memory = 600'000});
  const bytes sent = test::pattern(400'000, 1);
  auto first = peer_.start_call<bool>("same", constant(sent), std::uint64_t{1});
  auto second = peer_.start_call<bool>("same", constant(sent), std::uint64_t{1});
  EXPECT_EQ(outcome(second), errc::busy) << second.description();
  EXPECT_TRUE(first.result());
}

TEST_F(CallMemory, OfAResultIsBoundedAtTheCaller) {
  serve();
  const call_options options{.max_memory = 99'999};
  auto refused = peer_.start_call<buffer>(options, "make", std::uint64_t{100'000});
  EXPECT_EQ(outcome(refused), errc::call_failed);
  EXPECT_EQ(refused.cause(), errc::no_space);
  EXPECT_EQ(peer_.call<buffer>(options, "make", std::uint64_t{99'999}).size(), 99'999U);
}

TEST_F(CallMemory, IsNotTakenForCallsThatDoNotRun) {
  noting_resource noted;
  calls_.add("land", [](constant) {}, {.memory = {.resources = resources_of(noted)}});
  calls_.refuse([](const call_context&, std::string_view name) { return name == "land"; });
  serve();
  const bytes sent(300'000);
  auto refused = peer_.start_call<void>("land", constant(sent));
  EXPECT_EQ(outcome(refused), errc::permission_denied) << refused.description();
  auto absent = peer_.start_call<void>("absent", constant(sent));
  EXPECT_EQ(outcome(absent), errc::no_such_name) << absent.description();
  auto other = peer_.start_call<void>("echo", constant(sent), 1);
  EXPECT_EQ(outcome(other), errc::signature_differs) << other.description();
  EXPECT_EQ(noted.taken, 0U);
}

TEST_F(CallMemory, IsTheCallersWhenTheCallIsDone) {
  std::vector<message> kept;
  both_.receiver().on_message(message_name("ucxio calls", 1),
                              [&](message came) { kept.push_back(std::move(came)); });
  for (const std::size_t size : {1000U, 300'000U}) {
    bytes sent = test::pattern(size, 1);
    auto asked = peer_.start_call<bool>("same", constant(sent), std::uint64_t{1});
    ASSERT_TRUE(until([&] { return !kept.empty(); }));
    asked.cancel();
    ASSERT_TRUE(until([&] { return asked.done(); }));
    EXPECT_EQ(asked.error(), errc::canceled);
    sent = bytes();  // nothing reads it any more
    const std::vector<message> gone = std::exchange(kept, {});
    both_.settle();
  }
  const bytes sent = test::pattern(300'000, 1);
  { const auto dropped = peer_.start_call<bool>("same", constant(sent), std::uint64_t{1}); }
  EXPECT_EQ(peer_.under_way(), 0U);
  both_.settle();
  both_.receiver().on_message(message_name("ucxio calls", 1), {});
}

TEST_F(CallMemory, IsTheCallersWhenTheConnectionIsLost) {
  std::vector<message> kept;
  both_.receiver().on_message(message_name("ucxio calls", 1),
                              [&](message came) { kept.push_back(std::move(came)); });
  bytes sent = test::pattern(300'000, 1);
  auto asked = peer_.start_call<bool>("same", constant(sent), std::uint64_t{1});
  ASSERT_TRUE(until([&] { return !kept.empty(); }));
  std::error_code ec;
  both_.sender.close(close_mode::flush, ec);  // the call outlasts it
  ASSERT_TRUE(until([&] { return asked.done(); }));
  EXPECT_TRUE(asked.error());
  sent = bytes();
  both_.settle();
  both_.receiver().on_message(message_name("ucxio calls", 1), {});
}

TEST_F(CallMemory, GoesOverAConnectionAlone) {
  const remote_procedure<buffer(buffer)> echo("echo");
  std::error_code ec;
  echo.encode(filled(10, 1), ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  const remote_procedure<buffer(std::uint64_t)> make("make");
  call_context context;
  make.decode(calls_.dispatch(make.encode(10), context), ec);
  EXPECT_EQ(ec, errc::call_failed);
}

}  // namespace
}  // namespace ucx::calls
