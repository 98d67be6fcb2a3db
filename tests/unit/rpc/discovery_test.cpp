// What a simulated peer tells of its functions, and what is not believed.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "call/call_directory.hpp"
#include "call/call_listing.hpp"
#include "call/call_message.hpp"
#include "support/handlers/fire.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "ucx/rpc.hpp"

namespace ucx::calls {
namespace {

using namespace std::chrono_literals;

class Discovery : public ::testing::Test {
 protected:
  Discovery() {
    calls_.add("add", [](int a, int b) { return a + b; }, {.documentation = "Returns the sum."});
    calls_.add("add/12", [](double a, double b) { return a + b; });
    calls_.add_dynamic("any", "(list<u8>)->nil",
                       [](call_context&, call_reader&, call_writer& to) { to.nil(); },
                       {.documentation = "Two\nlines."});
  }

  void serve() { serves_ = call_server(both_.receiver(), calls_); }
  bool until(const std::function<bool()>& done) { return both_.network().run_until(done); }
  /// The peer answers each question with the next of these, and with the last one again.
  void answer(std::vector<call_writer> parts) {
    parts_ = std::move(parts);
    both_.receiver().on_message(message_name("ucxio calls", 1), [this](message came) {
      if (on_question_) on_question_();
      const auto begun = detail::decode_beginning(came.header());
      const call_writer& part = parts_[std::min(asked_++, parts_.size() - 1)];
      const detail::call_message made = detail::encode_result(begun->number, part.written());
      const message_name to_caller("ucxio calls", 2);
      came.peer().post_send(active_message{to_caller, made.head()}, made.body, 0,
                            {.memory = send_memory::copied});
    });
  }
  using function = std::tuple<std::string, std::string, std::string>;
  static call_writer part_of(const std::vector<function>& functions, bool is_whole) {
    call_writer made;
    made.list(2).list(functions.size());
    for (const auto& [name, signature, documentation] : functions) {
      made.list(3).text(name).text(signature).text(documentation);
    }
    made.boolean(is_whole);
    return made;
  }
  std::error_code outcome(const call_options& options = {}) {
    std::error_code ec;
    EXPECT_TRUE(peer_.signatures(options, ec).empty() || !ec);
    return ec;
  }

  test::simulated_messages both_;
  std::vector<call_writer> parts_;
  std::size_t asked_ = 0;
  std::function<void()> on_question_;
  call_table calls_;
  call_server serves_;
  call_channel peer_{both_.sender};
};

TEST_F(Discovery, TellsNamesTypesVersionsAndWords) {
  serve();
  const std::vector<call_description> all = peer_.signatures();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].called.name(), "add");
  EXPECT_EQ(all[0].called.signature().text(), "(i32,i32)->i32");
  EXPECT_EQ(all[0].called.signature().hash(), call_signature("(i32,i32)->i32").hash());
  EXPECT_EQ(all[0].version, 1U);
  EXPECT_EQ(all[0].documentation, "Returns the sum.");
  EXPECT_EQ(all[1].called.name(), "add/12");
  EXPECT_EQ(all[1].version, 12U);
  EXPECT_EQ(all[1].documentation, "");
  EXPECT_EQ(all[2].documentation, "Two\nlines.");
  call_writer arguments;
  arguments.integer(40).integer(2);
  call_request sum = peer_.start_dynamic_call(all[0].called, arguments);
  EXPECT_EQ(sum.result().integer(), 42);
  EXPECT_EQ(calls_.statistics().done, 2U);
}

TEST_F(Discovery, TellsOfManyInParts) {
  for (int i = 0; i < 3000; ++i) {
    calls_.add("many." + std::to_string(i), [i] { return i; },
               {.documentation = std::string(100, 'x')});
  }
  serve();
  const call_listing first = peer_.start_signatures().result();
  EXPECT_FALSE(first.is_whole);
  const call_listing last = peer_.start_signatures({}, "many.998").result();
  EXPECT_TRUE(last.is_whole);
  EXPECT_EQ(last.functions.size(), 1U);
  EXPECT_EQ(peer_.signatures().size(), 3003U);
}

TEST_F(Discovery, TellsThatThereIsNone) {
  const call_table empty;
  serves_ = call_server(both_.receiver(), empty);
  EXPECT_TRUE(peer_.signatures().empty());
}

TEST_F(Discovery, FailsAsCallsDo) {
  EXPECT_EQ(outcome(), errc::no_such_handler);
  EXPECT_THROW(static_cast<void>(peer_.signatures()), error);
  const call_channel none;
  std::error_code ec;
  EXPECT_TRUE(none.signatures({}, ec).empty());
  EXPECT_EQ(ec, errc::closed);
  serve();
  calls_.refuse([](const call_context&, std::string_view name) { return name == ".signatures"; });
  EXPECT_EQ(outcome(), errc::permission_denied);
}

TEST_F(Discovery, EndsAtItsDeadline) {
  both_.receiver().on_message(message_name("ucxio calls", 1), [](message) {});
  EXPECT_EQ(outcome({.timeout = 2s}), errc::timed_out);
}

TEST_F(Discovery, HasOneDeadlineForAllParts) {
  std::vector<scheduled_call> late;
  std::size_t asked = 0;
  both_.receiver().on_message(message_name("ucxio calls", 1), [&](message came) {
    const auto begun = detail::decode_beginning(came.header());
    if (begun->kind != static_cast<std::uint8_t>(detail::call_kind::call)) return;
    const std::string name = "f" + std::to_string(asked++);
    late.push_back(both_.receiver().call_after(
        900ms, [to = came.peer(), number = begun->number,
                part = part_of({{name, "()->nil", ""}}, false)]() mutable {
          const detail::call_message made = detail::encode_result(number, part.written());
          to.post_send(active_message{message_name("ucxio calls", 2), made.head()}, made.body, 0,
                       {.memory = send_memory::copied});
        }));
  });
  EXPECT_EQ(outcome({.timeout = 2s}), errc::timed_out);
  EXPECT_EQ(asked, 3U);
}

TEST_F(Discovery, GoesOnWhereItsChannelIsDestroyed) {
  auto channel = std::make_unique<call_channel>(both_.sender);
  answer({part_of({{"a", "()->nil", ""}}, false), part_of({{"b", "()->nil", ""}}, true)});
  on_question_ = [&] { channel.reset(); };
  EXPECT_EQ(channel->signatures().size(), 2U);
  EXPECT_EQ(channel, nullptr);
}

TEST_F(Discovery, DoesNotWaitInsideACallback) {
  calls_.add("add/3", [](int a, int b) { return a + b; });
  serve();
  std::error_code ec;
  call_request sum = peer_.start_dynamic_call({"add/3", "(i32,i32)->i32"},
                                              std::move(call_writer().integer(1).integer(2)));
  sum.then([&](std::error_code) { static_cast<void>(peer_.signatures({}, ec)); });
  ASSERT_TRUE(until([&] { return static_cast<bool>(ec); }));
  EXPECT_EQ(ec, errc::would_deadlock);
}

TEST_F(Discovery, LeavesOutFunctionsOfLaterVersions) {
  answer({part_of({{"a", "(tensor<f32>)->nil", ""}, {"b", "()->nil", ""}, {"c", "(any)->nil", ""}},
                  false),
          part_of({{"c", "(any)->nil", ""}, {"d", "(any)->nil", ""}}, true)});
  const std::vector<call_description> all = peer_.signatures();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].called.name(), "b");
  for (const bool is_whole : {true, false}) {
    asked_ = 0;
    answer({part_of({{"c", "(any)->nil", ""}}, is_whole)});
    EXPECT_EQ(outcome(), is_whole ? std::error_code() : make_error_code(errc::protocol_error));
  }
  answer({part_of({{"c", "(any)->nil", ""}, {"b", "()->nil", ""}}, true)});
  EXPECT_EQ(outcome(), errc::protocol_error) << "they are not in order";
}

TEST_F(Discovery, DoesNotBelieveWhatIsNoListing) {
  const std::string none = "()->nil";
  const std::vector<call_writer> wrong{
      part_of({{"b", none, ""}, {"a", none, ""}}, true),
      part_of({{"a", none, ""}, {"a", none, ""}}, true),
      part_of({{"no name", none, ""}}, true),
      part_of({{".signatures", none, ""}}, true),
      part_of({{"a", "()->", ""}}, true),
      part_of({{"a", none, std::string(4097, 'x')}}, true),
      part_of({}, false),
      std::move(call_writer().list(1).boolean(true)),
      std::move(call_writer().text("a")),
  };
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    asked_ = 0;
    answer({wrong[i]});
    EXPECT_EQ(outcome(), errc::protocol_error) << i;
  }
}

TEST_F(Discovery, DoesNotFollowAListingWithoutAnEnd) {
  answer({part_of({{"a", "()->nil", ""}}, false)});
  EXPECT_EQ(outcome(), errc::protocol_error) << "the same part again";
  EXPECT_EQ(asked_, 2U);
}

TEST_F(Discovery, DoesNotBelieveThatThereAreTooMany) {
  std::vector<call_writer> parts;
  for (std::size_t i = 0; i < 7; ++i) {
    std::vector<function> some;
    for (std::size_t k = 0; k < 10'000; ++k) {
      some.emplace_back("f" + std::to_string(1'000'000 + i * 10'000 + k), "()->nil", "");
    }
    parts.push_back(part_of(some, false));
  }
  answer(std::move(parts));
  EXPECT_EQ(outcome(), errc::protocol_error);
  EXPECT_EQ(asked_, 7U);
}

TEST_F(Discovery, DoesNotBelieveThatTheirWordsAreTooLong) {
  constexpr std::size_t in_a_part = 240;
  constexpr std::size_t parts = call_listing::max_size / (in_a_part * 4096) + 1;
  std::vector<call_writer> all;
  for (std::size_t i = 0; i < parts; ++i) {
    std::vector<function> some;
    for (std::size_t k = 0; k < in_a_part; ++k) {
      some.emplace_back("f" + std::to_string(1'000'000 + i * in_a_part + k), "()->nil",
                        std::string(4096, 'x'));
    }
    all.push_back(part_of(some, false));
  }
  answer(std::move(all));
  EXPECT_EQ(outcome(), errc::protocol_error);
  EXPECT_EQ(asked_, parts);
}

TEST_F(Discovery, KeepsItsNameToItself) {
  std::error_code ec;
  calls_.add(
      ".signatures", [] { return 1; }, ec);
  EXPECT_EQ(ec, errc::bad_name);
  calls_.add(
      ".other", [] { return 1; }, ec);
  EXPECT_EQ(ec, errc::bad_name);
}

TEST_F(Discovery, RefusesWordsThatAreNoDocumentation) {
  std::error_code ec;
  calls_.add(
      "long", [] {}, {.documentation = std::string(4097, 'x')}, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  calls_.add(
      "bytes", [] {}, {.documentation = "\xff"}, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  calls_.add(
      "most", [] {}, {.documentation = std::string(4096, 'x')}, ec);
  EXPECT_FALSE(ec);
}

/// Lets a caller see the functions whose names begin so.
class prefix_gate final : public detail::call_gate {
 public:
  explicit prefix_gate(std::string_view prefix) : prefix_(prefix) {}
  bool shows(std::string_view name) noexcept override { return name.starts_with(prefix_); }

 private:
  std::string_view prefix_;
};

TEST(CallGate, HidesFunctionsAsIfTheyWereNotThere) {
  detail::call_directory calls;
  for (const std::string_view name : {"open", "open/2", "shut", "shut/2"}) {
    const auto added =
        calls.add(name, call_signature("()->nil"), {},
                  [](call_context&, call_reader&, call_writer& to) { to.nil(); }, {});
    ASSERT_TRUE(added);
  }
  prefix_gate gate("open");
  const call_signature types("()->nil");
  call_context context;
  const auto answer_to = [&](const call_function& called, detail::call_kind kind,
                             std::uint64_t number = 0) {
    const std::optional<detail::call_message> answer =
        calls.answer({.kind = kind,
                      .hash = called.signature().hash(),
                      .function = number,
                      .name = called.name()},
                     context, &gate);
    const std::vector<std::byte> wire = answer.value().joined();
    std::string text = "done";
    try {
      call_reader result = called.decode(wire);
      if (kind == detail::call_kind::bind) number = result.unsigned_integer();
    } catch (const error& failed) {
      EXPECT_EQ(failed.code(), errc::no_such_name);
      text = failed.what();
    }
    return std::pair(text.substr(0, text.find(" [")), number);
  };
  using detail::call_kind;
  EXPECT_EQ(answer_to({"open", "()->nil"}, call_kind::call).first, "done");
  const auto [bound, number] = answer_to({"open", "()->nil"}, call_kind::bind);
  EXPECT_EQ(bound, "done");
  EXPECT_EQ(answer_to({"open", "()->nil"}, call_kind::bound, number).first, "done");
  // The hidden ones have the next numbers.
  for (const call_kind kind : {call_kind::call, call_kind::bind}) {
    const std::string hidden = answer_to({"shut", "()->nil"}, kind).first;
    const std::string absent = answer_to({"what", "()->nil"}, kind).first;
    EXPECT_EQ(hidden.substr(hidden.find(':', 12)), absent.substr(absent.find(':', 12)));
  }
  EXPECT_EQ(answer_to({"shut", "()->nil"}, call_kind::bound, number + 2).first,
            answer_to({"shut", "()->nil"}, call_kind::bound, number + 9).first);
  gate = prefix_gate("open/");
  EXPECT_NE(answer_to({"open", "()->nil"}, call_kind::call).first.find("open/2"),
            std::string::npos);
  gate = prefix_gate("shut/");
  EXPECT_EQ(answer_to({"open", "()->nil"}, call_kind::call).first.find("open/2"),
            std::string::npos);
}

test::fire wait_for(call_request asked, std::error_code& cause) {
  try {
    co_await std::move(asked);
  } catch (const error& failed) {
    cause = failed.cause();
  }
}

TEST_F(Discovery, LeavesTheCauseOfAFailureWithEachWayOfWaiting) {
  calls_.add("fail", []() -> int { throw error(errc::no_such_name, "words"); });
  serve();
  const auto start = [this] {
    return peer_.start_dynamic_call(remote_procedure<int()>("fail").untyped(), call_writer());
  };
  try {
    start().wait();
    ADD_FAILURE() << "it has thrown";
  } catch (const error& failed) {
    EXPECT_EQ(failed.code(), errc::call_failed);
    EXPECT_EQ(failed.cause(), errc::no_such_name);
  }
  std::future<message_info> later = start().to_future();
  ASSERT_TRUE(until([&] { return later.wait_for(0s) == std::future_status::ready; }));
  try {
    later.get();
    ADD_FAILURE() << "it has thrown";
  } catch (const error& failed) {
    EXPECT_EQ(failed.cause(), errc::no_such_name);
  }
  std::error_code cause;
  wait_for(start(), cause);
  ASSERT_TRUE(until([&] { return static_cast<bool>(cause); }));
  EXPECT_EQ(cause, errc::no_such_name);
}

}  // namespace
}  // namespace ucx::calls
