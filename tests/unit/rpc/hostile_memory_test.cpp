// Messages with memory beside them that do not keep to the rules: each field of the table, and the
// values that name it.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "call/call_message.hpp"
#include "support/bytes/pattern.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "ucx/memory_resources.hpp"
#include "ucx/rpc.hpp"
#include "unit/rpc/call_names.hpp"
#include "wire/wire.hpp"

namespace ucx::calls {
namespace {

using bytes = std::vector<std::byte>;
using constant = std::span<const std::byte>;

/// Has no memory.
class empty_resource final : public std::pmr::memory_resource {
  void* do_allocate(std::size_t, std::size_t) override { throw std::bad_alloc(); }
  void do_deallocate(void*, std::size_t, std::size_t) override {}
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }
};

/// Counts what is taken.
class counting_resource final : public std::pmr::memory_resource {
 public:
  int taken = 0;

 private:
  void* do_allocate(std::size_t size, std::size_t alignment) override {
    ++taken;
    return std::pmr::new_delete_resource()->allocate(size, alignment);
  }
  void do_deallocate(void* block, std::size_t size, std::size_t alignment) override {
    std::pmr::new_delete_resource()->deallocate(block, size, alignment);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }
};

class HostileMemory : public ::testing::Test {
 protected:
  HostileMemory() {
    calls_.add("take", [this](buffer first, constant second) {
      ++runs_;
      return first.size() + second.size();
    });
    calls_.add("add", [this](int a, int b) {
      ++runs_;
      return a + b;
    });
    calls_.add_dynamic("any", "(buffer,buffer)->nil",
                       [this](call_context&, call_reader&, call_writer& to) {
                         ++runs_;
                         to.nil();
                       });
  }

  void serve() { serves_ = call_server(both_.receiver(), calls_, {.max_memory = 1U << 20U}); }
  bool until(const std::function<bool()>& done) { return both_.network().run_until(done); }

  /// Returns a call of "take" with two parts of 1000 bytes.
  detail::call_message honest(std::string_view name = "take") const {
    const remote_procedure<std::size_t(buffer, constant)> take("take");
    const std::string types = name == "add" ? "(i32,i32)->i32" : "(buffer,buffer)->nil";
    const call_function other(name, types);
    call_writer arguments;
    arguments.memory(memory_).memory(memory_);
    const std::vector<detail::sent_part> parts{{.bytes = memory_}, {.bytes = memory_}};
    detail::call_message made = detail::encode_request(
        {.number = 7,
         .hash = (name == "take" ? take.untyped() : other).signature().hash(),
         .name = name,
         .arguments = arguments.written()},
        parts);
    const std::vector<memory_kind> kinds(2, memory_kind::host);
    detail::add_parts(made, kinds);
    return made;
  }
  /// Sends it as it is, with `beside` bytes before the body.
  void send(endpoint& to, const message_name& name, const detail::call_message& what,
            std::size_t beside) {
    bytes all(beside);
    all.insert(all.end(), what.body.begin(), what.body.end());
    const request sending =
        to.start_send(active_message{name, what.head()}, all, {.memory = send_memory::copied});
    both_.settle(std::chrono::milliseconds(10));
  }
  /// Returns the outcome of the answer to what the test has sent.
  detail::call_outcome outcome(const detail::call_message& what, std::size_t beside) {
    answers_.clear();
    send(both_.sender, to_callee, what, beside);
    EXPECT_TRUE(until([&] { return !answers_.empty(); }));
    if (answers_.empty()) return detail::call_outcome::done;
    return static_cast<detail::call_outcome>(
        detail::take_at<std::uint16_t>(answers_.front().header(), 16));
  }
  void keep_answers() {
    both_.pair.reader.on_message(to_caller,
                                 [this](message came) { answers_.push_back(std::move(came)); });
  }
  template <class Integer>
  static detail::call_message with(detail::call_message made, std::size_t at, Integer value) {
    detail::put_at(made.long_head, at, value);
    return made;
  }

  const bytes memory_ = test::pattern(1000, 1);
  test::simulated_messages both_;
  int runs_ = 0;
  std::vector<message> answers_;
  call_table calls_;
  call_server serves_;
};

constexpr std::size_t count_at = 42;
constexpr std::size_t table_at = 56;

TEST_F(HostileMemory, IsRefusedInEachFieldOfTheTable) {
  using detail::call_outcome;
  serve();
  keep_answers();
  constexpr std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(outcome(honest(), 2000), call_outcome::done);
  EXPECT_EQ(runs_, 1);
  const auto count = [&](unsigned number) {
    return with(honest(), count_at, static_cast<std::uint16_t>(number));
  };
  EXPECT_EQ(outcome(count(9), 2000), call_outcome::bad_call);
  EXPECT_EQ(outcome(count(0xffff), 2000), call_outcome::bad_call);
  EXPECT_EQ(outcome(count(3), 2000), call_outcome::bad_call) << "its name would be a part";
  EXPECT_EQ(outcome(count(1), 2000), call_outcome::unknown_function) << "a length is no name";
  const auto size = [&](std::uint64_t number) { return with(honest(), table_at, number); };
  EXPECT_EQ(outcome(size(huge), 2000), call_outcome::bad_call) << "the sum has no number";
  EXPECT_EQ(outcome(size(huge - 1000), 2000), call_outcome::bad_call);
  EXPECT_EQ(outcome(size(1100), 2000), call_outcome::bad_call) << "more than all of it";
  EXPECT_EQ(outcome(size(999), 2000), call_outcome::bad_arguments) << "a byte is the body's";
  EXPECT_EQ(outcome(size(0), 3U << 20U), call_outcome::bad_call) << "a body of more than 1 MiB";
  EXPECT_EQ(outcome(size(2U << 20U), (2U << 20U) + 1000), call_outcome::no_room);
  EXPECT_EQ(runs_, 1);
  for (const unsigned kind : {1U, 3U, 4U, 5U, 200U, 255U}) {
    EXPECT_EQ(outcome(with(honest(), table_at + 8, static_cast<std::uint8_t>(kind)), 2000),
              call_outcome::done)
        << "there is no resource for it: " << kind;
  }
  EXPECT_EQ(serves_.under_way(), 0U);
}

/// The kind in the table is the peer's word.
TEST_F(HostileMemory, LandsInTheKindThatTheFunctionHas) {
  counting_resource host, device;
  auto resources = std::make_shared<memory_resources>();
  resources->add(memory_kind::host, host);
  resources->add(memory_kind::cuda, device);
  const auto taking = [this](buffer first, constant second) {
    runs_ += first.size() + second.size() == 2000;
  };
  calls_.add("landed", taking, {.memory = {.resources = resources}});
  serve();
  keep_answers();
  int ran = 0;
  for (unsigned kind = 0; kind < 256; ++kind) {
    EXPECT_EQ(outcome(with(honest("landed"), table_at + 8, static_cast<std::uint8_t>(kind)), 2000),
              detail::call_outcome::done);
    EXPECT_EQ(runs_, ++ran) << kind;
    EXPECT_EQ(host.taken, 2 * ran) << kind;
  }
  EXPECT_EQ(device.taken, 0);
  serves_ = call_server();
}

TEST_F(HostileMemory, IsRefusedInHeadsOfEachLength) {
  serve();
  keep_answers();
  const detail::call_message whole = honest();
  for (std::size_t size = 16; size < whole.long_head.size(); ++size) {
    detail::call_message cut = whole;
    cut.long_head.resize(size);
    detail::put_at(cut.long_head, 2, static_cast<std::uint16_t>(size));
    EXPECT_NE(outcome(cut, 2000), detail::call_outcome::done) << size;
  }
  EXPECT_EQ(runs_, 0);
}

TEST_F(HostileMemory, IsNamedOnceByTheValues) {
  using detail::call_outcome;
  serve();
  keep_answers();
  for (const std::string_view name : {"take", "any"}) {
    const int ran = runs_;
    detail::call_message made = honest(name);
    ASSERT_EQ(made.body.size(), 2U);
    made.body[1] = std::byte{0};
    EXPECT_EQ(outcome(made, 2000), call_outcome::bad_arguments) << "the first one twice";
    made.body[1] = std::byte{2};
    EXPECT_EQ(outcome(made, 2000), call_outcome::bad_arguments) << "one that is not there";
    made.body[1] = std::byte{0xff};
    EXPECT_EQ(outcome(made, 2000), call_outcome::bad_arguments) << "a negative number";
    EXPECT_EQ(runs_, ran) << name;
    made.body = {std::byte{1}, std::byte{0}};
    EXPECT_EQ(outcome(made, 2000), call_outcome::done) << "in another order";
  }
  EXPECT_EQ(outcome(honest("add"), 2000), call_outcome::bad_arguments)
      << "no value of this function is memory";
}

TEST_F(HostileMemory, IsNotTakenWhereNoArgumentIsMemory) {
  counting_resource host;
  auto resources = std::make_shared<memory_resources>();
  resources->add(memory_kind::host, host);
  const call_function_options counted{.memory = {.resources = resources}};
  calls_.add(
      "plain", [this](int, std::string) { ++runs_; }, counted);
  calls_.add(
      "nothing", [this] { return buffer(static_cast<std::size_t>(++runs_)); }, counted);
  serve();
  keep_answers();
  const bytes beside = memory_;
  const auto asked = [&](std::string_view name, std::string_view types) {
    const std::vector<detail::sent_part> parts{{.bytes = beside}};
    detail::call_message made = detail::encode_request(
        {.number = 7, .hash = call_function(name, types).signature().hash(), .name = name}, parts);
    const std::vector<memory_kind> kinds(1, memory_kind::host);
    detail::add_parts(made, kinds);
    return outcome(made, beside.size());
  };
  EXPECT_EQ(asked("plain", "(i32,text)->nil"), detail::call_outcome::bad_arguments);
  EXPECT_EQ(asked("nothing", "()->buffer"), detail::call_outcome::bad_arguments);
  EXPECT_EQ(host.taken, 0);
  EXPECT_EQ(runs_, 0);
  EXPECT_EQ(serves_.under_way(), 0U);
  serves_ = call_server();
}

TEST_F(HostileMemory, WithoutMemoryForItIsBusy) {
  empty_resource none;
  auto resources = std::make_shared<memory_resources>();
  resources->add(memory_kind::host, none);
  calls_.add("none", [](constant) {}, {.memory = {.resources = resources}});
  serve();
  call_channel peer(both_.sender);
  for (const std::size_t size : {10U, 300'000U}) {
    const bytes sent(size);
    auto asked = peer.start_call<void>("none", constant(sent));
    ASSERT_TRUE(until([&] { return asked.done(); }));
    EXPECT_EQ(asked.error(), errc::busy) << asked.description();
  }
  EXPECT_EQ(serves_.under_way(), 0U);
  calls_.add("make", [](int size) { return buffer(static_cast<std::size_t>(size)); });
  auto asked =
      peer.start_call<buffer>(call_options{.memory = {.resources = resources}}, "make", 300'000);
  ASSERT_TRUE(until([&] { return asked.done(); }));
  EXPECT_EQ(asked.error(), errc::call_outcome_unknown) << asked.description();
}

/// Answers with a table that is wrong in one field.
TEST_F(HostileMemory, OfAnAnswerEndsItsCallAlone) {
  std::vector<message> kept;
  both_.receiver().on_message(to_callee, [&](message came) { kept.push_back(std::move(came)); });
  const call_channel peer(both_.sender);
  constexpr std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();
  const auto answered = [&](const std::function<void(detail::call_message&)>& change,
                            std::size_t beside) {
    kept.clear();
    auto asked = peer.start_call<buffer>("f");
    EXPECT_TRUE(until([&] { return !kept.empty(); }));
    call_writer value;
    value.memory(buffer(1000));
    auto made = detail::encode_result_of(detail::decode_beginning(kept[0].header())->number, value);
    const std::vector<memory_kind> kinds(1, memory_kind::host);
    detail::add_parts(made, kinds);
    change(made);
    endpoint back = kept[0].peer();
    send(back, to_caller, made, beside);
    EXPECT_TRUE(until([&] { return asked.done(); }));
    std::error_code ec;
    static_cast<void>(asked.result(ec));
    return ec;
  };
  const auto put = [](std::size_t at, auto value) {
    return [at, value](detail::call_message& made) { detail::put_at(made.long_head, at, value); };
  };
  EXPECT_EQ(answered([](detail::call_message&) {}, 1000), std::error_code());
  EXPECT_EQ(answered(put(18, std::uint16_t{9}), 1000), errc::protocol_error);
  EXPECT_EQ(answered(put(18, std::uint16_t{2}), 1000), errc::protocol_error);
  EXPECT_EQ(answered(put(18, std::uint16_t{0}), 0), errc::protocol_error);
  EXPECT_EQ(answered(put(32, huge), 1000), errc::call_outcome_unknown);
  EXPECT_EQ(answered(put(32, std::uint64_t{1002}), 1000), errc::call_outcome_unknown);
  EXPECT_EQ(answered(put(32, std::uint64_t{0}), 3U << 20U), errc::call_outcome_unknown);
  EXPECT_EQ(answered(put(32, std::uint64_t{300} << 20U), 1000), errc::call_outcome_unknown);
  EXPECT_EQ(answered([](detail::call_message& made) { made.body[0] = std::byte{1}; }, 1000),
            errc::protocol_error);
  EXPECT_EQ(peer.under_way(), 0U);
}

}  // namespace
}  // namespace ucx::calls
