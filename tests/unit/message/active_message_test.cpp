// Messages for handlers: header first, payload where the handler says, and answers.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "support/basics/mentions.hpp"
#include "support/handlers/lock_probe.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "wire/message_number.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

TEST(ActiveMessage, ReachesTheHandlerOfItsNumber) {
  simulated_messages both;
  for (const std::size_t size : message_sizes) {
    const std::vector<std::byte> bytes = pattern(size, 1);
    std::vector<std::byte> into = blank(size);
    std::optional<request> receive;
    both.receiver().on_message(5, [&](message came) {
      EXPECT_EQ(came.tag(), 5U);
      EXPECT_EQ(came.length(), size);
      EXPECT_TRUE(holds_pattern(came.header(), 2));
      EXPECT_EQ(came.header().size(), 20U);
      if (came.has_payload()) {
        EXPECT_TRUE(holds_pattern(came.data(), 1));
      }
      receive = came.start_receive(into);  // the message may go, the receive goes on
    });
    std::vector<std::byte> header = pattern(20, 2);
    request send = both.sender.start_send(active_message{5, header}, bytes);
    std::fill(header.begin(), header.end(), untouched);  // it was copied
    EXPECT_FALSE(both.outcome(send));
    both.network().run_until([&] { return receive && receive->done(); });
    ASSERT_TRUE(receive);
    EXPECT_FALSE(receive->error());
    EXPECT_TRUE(holds_pattern(into, 1)) << size;
  }
}

// It travels: every version of the library has to make the same.
TEST(MessageName, HasTheHashOfItsOwnerInItsUpperHalf) {
  EXPECT_EQ(std::uint64_t{message_name("tables", 3)}, 0xAE1F6EA300000003U);
  EXPECT_EQ(std::uint64_t{message_name("tables", 0xFFFFFFFFU)}, 0xAE1F6EA3FFFFFFFFU);
  EXPECT_EQ(std::uint64_t{message_name("ucxio", 0)}, 0x107E5DAB00000000U);
  EXPECT_EQ(std::uint64_t{message_name("a", 1)}, 0xE6C632B600000001U);
  EXPECT_EQ(std::uint64_t{message_name("", 7)}, 7U) << "a plain number";
  EXPECT_EQ(detail::half_of(0xAE1F6EA39B0B298AU), 0xAE1F6EA3U);
  EXPECT_EQ(detail::half_of(0x9B0B298AU), 1U) << "not that of plain numbers";
}

TEST(MessageName, OfTwoLibrariesReachesTheHandlerOfEach) {
  simulated_messages both;
  std::vector<std::string> came;
  const auto noting = [&came](std::string who) {
    return
        [&came, who](const message& each) { came.push_back(who + std::to_string(each.length())); };
  };
  both.receiver().on_message(3, noting("plain"));
  both.receiver().on_message({"tables", 3}, noting("tables"));
  both.receiver().on_message({"graphs", 3}, noting("graphs"));
  both.receiver().on_message({"graphs", 4}, noting("other graphs"));
  both.sender.send(active_message{message_name("graphs", 3)}, pattern(1));
  both.sender.send(active_message{message_name("tables", 3)}, pattern(2));
  both.sender.send(active_message{3}, pattern(3));
  both.sender.send(active_message{message_name("graphs", 4)}, pattern(4));
  both.settle();
  EXPECT_EQ(came, (std::vector<std::string>{"graphs1", "tables2", "plain3", "other graphs4"}));
  both.receiver().on_message({"tables", 3}, {});
  request refused = both.sender.start_send(active_message{message_name("tables", 3)}, pattern(1),
                                           {.until = send_until::matched});
  EXPECT_EQ(both.outcome(refused), errc::no_such_handler);
}

TEST(MessageName, OfASecondOwnerOfItsHashIsAnError) {
  simulated_messages both;
  worker& receiver = both.receiver();
  const message_name first("library-36869", 1);
  const message_name second("library-68354", 2);
  ASSERT_EQ(std::uint64_t{first} >> 32U, std::uint64_t{second} >> 32U);
  int called = 0;
  receiver.on_message(first, [&](const message&) { ++called; });
  std::error_code ec;
  receiver.on_message(
      second, [](const message&) {}, ec);
  EXPECT_EQ(ec, errc::already_exists);
  receiver.on_message(second, {}, ec);
  EXPECT_EQ(ec, errc::already_exists);
  receiver.on_message(
      std::uint64_t{first}, [](const message&) {}, ec);
  EXPECT_EQ(ec, errc::already_exists) << "a plain number";
  try {
    receiver.on_message(second, [](const message&) {});
    ADD_FAILURE() << "it was taken";
  } catch (const error& failed) {
    EXPECT_TRUE(mentions(failed.what(), "library-68354")) << failed.what();
  }
  both.sender.send(active_message{first}, pattern(1));
  both.settle();
  EXPECT_EQ(called, 1);
  receiver.on_message(
      {"library-36869", 2}, [](const message&) {}, ec);
  EXPECT_FALSE(ec);
}

TEST(MessageName, FindsItsHashTakenByAPlainNumber) {
  simulated_messages both;
  worker& receiver = both.receiver();
  const message_name named("tables", 3);
  receiver.on_message(std::uint64_t{named} + 1, [](const message&) {});
  receiver.on_message(std::uint64_t{named} + 2, [](const message&) {});
  std::error_code ec;
  receiver.on_message(
      named, [](const message&) {}, ec);
  EXPECT_EQ(ec, errc::already_exists);
}

TEST(ActiveMessage, HeadersOfEveryLength) {
  simulated_messages both;
  std::vector<std::size_t> lengths;
  both.receiver().on_message(1, [&](message came) {
    lengths.push_back(came.header().size());
    EXPECT_TRUE(holds_pattern(came.header()));
  });
  const std::size_t longest = both.sender.max_header_size();
  EXPECT_EQ(longest, 4096U);
  const std::vector<std::size_t> wanted{0, 1, 16, 88, 89, 1000, longest};
  for (const std::size_t length : wanted) {
    both.sender.send(active_message{1, pattern(length)}, pattern(10));
  }
  both.settle();
  EXPECT_EQ(lengths.size(), wanted.size());
  request send = both.sender.start_send(active_message{1, pattern(longest + 1)}, pattern(1));
  EXPECT_EQ(send.error(), errc::header_too_long);
}

TEST(ActiveMessage, IsAnsweredByItsHandler) {
  simulated_messages both;
  both.receiver().on_message(1, [](message asked) {
    const std::vector<std::byte> answer(asked.data().rbegin(), asked.data().rend());
    request reply =
        asked.peer().start_send(asked.length(), answer, {.memory = send_memory::copied});
    EXPECT_TRUE(reply.done());
  });
  for (std::size_t size = 1; size < 100; ++size) {
    const std::vector<std::byte> question = pattern(size);
    std::vector<std::byte> answer(size);
    request receive = both.sender.start_receive(size, answer);
    both.sender.send(active_message{1}, question);
    ASSERT_FALSE(both.outcome(receive));
    EXPECT_TRUE(std::equal(question.rbegin(), question.rend(), answer.begin()));
  }
}

TEST(ActiveMessage, RepliesWithAKeyWhereARequestWouldBeDropped) {
  simulated_messages both;
  std::uint64_t told = 0;
  both.receiver().on_message(1, [&](message asked) {
    endpoint peer = asked.peer();
    message_handlers handlers;
    handlers.on_sent = [&](std::uint64_t key, std::error_code how) {
      told = key;
      EXPECT_FALSE(how);
    };
    peer.set_message_handlers(std::move(handlers));
    std::error_code ec;
    peer.post_send(active_message{2, asked.header()}, asked.data(), 77,
                   {.memory = send_memory::copied}, ec);
    EXPECT_FALSE(ec);
    const std::vector<std::byte> endless(peer.max_header_size() + 1);
    peer.post_send(active_message{2, endless}, asked.data(), 78, {}, ec);
    EXPECT_EQ(ec, errc::header_too_long);
  });
  int came = 0;
  both.pair.reader.on_message(2, [&](message answer) {
    ++came;
    EXPECT_TRUE(holds_pattern(answer.header(), 2));
    EXPECT_TRUE(holds_pattern(answer.data(), 1));
  });
  both.sender.send(active_message{1, pattern(10, 2)}, pattern(100, 1));
  both.settle();
  EXPECT_EQ(came, 1);
  EXPECT_EQ(told, 77U);
}

TEST(ActiveMessage, WhatItsHandlerThrowsIsReported) {
  int reports = 0;
  simulated_pair_options options;
  options.owner_worker.on_exception = [&](std::exception_ptr what) {
    ++reports;
    EXPECT_THROW(std::rethrow_exception(what), std::runtime_error);
  };
  simulated_messages both(options);
  int came = 0;
  both.receiver().on_message(1, [&](message) {
    if (++came < 3) throw std::runtime_error("of the user's");
  });
  // The message that was on its way to it is refused, and the next is handled.
  const std::vector<std::byte> big = pattern(1U << 20U);
  request refused = both.sender.start_send(active_message{1}, big);
  EXPECT_EQ(both.outcome(refused), errc::message_refused);
  both.sender.send(active_message{1}, pattern(1));
  both.sender.send(active_message{1}, pattern(1));
  both.settle();
  EXPECT_EQ(came, 3);
  EXPECT_EQ(reports, 2);
  both.receiver().on_message(1, {});  // does not wait for one that threw
}

TEST(ActiveMessage, WithoutHandlerIsRefused) {
  simulated_messages both;
  std::vector<message_info> refused;
  message_handlers handlers;
  handlers.on_refused = [&](message_info info) { refused.push_back(info); };
  both.sender.set_message_handlers(std::move(handlers));
  const std::vector<std::byte> big = pattern(1U << 20U);
  request announced = both.sender.start_send(active_message{3}, big);
  EXPECT_EQ(both.outcome(announced), errc::no_such_handler);
  request waits =
      both.sender.start_send(active_message{3}, pattern(5), {.until = send_until::matched});
  EXPECT_EQ(both.outcome(waits), errc::no_such_handler);
  EXPECT_TRUE(refused.empty());
  both.sender.send(active_message{3}, pattern(5));
  both.settle();
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused.front(), (message_info{3, 5}));
  // And is not, once there is one.
  int came = 0;
  both.receiver().on_message(3, [&](message) { ++came; });
  both.sender.send(active_message{3}, pattern(5));
  both.settle();
  EXPECT_EQ(came, 1);
  both.receiver().on_message(3, {});
  both.sender.send(active_message{3}, pattern(5));
  both.settle();
  EXPECT_EQ(came, 1);
  EXPECT_EQ(refused.size(), 2U);
}

TEST(ActiveMessage, RefusalToldToNoneIsLoggedOnceForEachNumber) {
  std::vector<std::string> lines;
  simulated_pair_options sides;
  sides.reader_context.log.level = log_level::warning;
  sides.reader_context.log.sink = [&](log_level, std::string_view line) {
    lines.emplace_back(line);
  };
  simulated_messages both(sides);
  for (int round = 0; round < 3; ++round) {
    both.sender.send(active_message{3}, pattern(5));
    both.sender.send(active_message{4}, pattern(5));
    both.settle();
  }
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_TRUE(mentions(lines[0], "no handler for messages of number 3")) << lines[0];
  EXPECT_TRUE(mentions(lines[1], "no handler for messages of number 4")) << lines[1];
  for (std::uint64_t number = 100; number < 200; ++number) {
    both.sender.send(active_message{number}, pattern(5));
  }
  both.settle(100ms);
  EXPECT_EQ(lines.size(), 16U) << "and no more of one connection";
  int refused = 0;
  message_handlers handlers;
  handlers.on_refused = [&](message_info) { ++refused; };
  both.sender.set_message_handlers(std::move(handlers));
  both.sender.send(active_message{5}, pattern(5));
  both.settle();
  EXPECT_EQ(refused, 1);
}

TEST(ActiveMessage, OrderIsThatOfTheStarts) {
  simulated_messages both;
  std::vector<std::uint64_t> order;
  for (std::uint64_t number : {1U, 2U}) {
    both.receiver().on_message(number, [&](message came) { order.push_back(came.length()); });
  }
  std::vector<request> sends;
  std::vector<std::vector<std::byte>> sent;
  for (std::size_t i = 0; i < 30; ++i) sent.push_back(pattern(i % 4 == 0 ? 300000 + i : i));
  for (std::size_t i = 0; i < 30; ++i) {
    sends.push_back(both.sender.start_send(active_message{1 + i % 2}, sent[i]));
  }
  both.settle();
  ASSERT_EQ(order.size(), 30U);
  for (std::size_t i = 0; i < 30; ++i) EXPECT_EQ(order[i], sent[i].size());
}

TEST(ActiveMessage, MayBeKeptAndReceivedLater) {
  simulated_pair_options options;
  options.link.lasting_data = true;
  simulated_messages both(options);
  std::vector<message> kept;
  both.receiver().on_message(1, [&](message came) { kept.push_back(std::move(came)); });
  const std::vector<std::byte> big = pattern(1U << 20U);
  request send = both.sender.start_send(active_message{1}, big);
  both.sender.send(active_message{1}, pattern(10000, 1));
  both.settle(1s);
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_EQ(both.network().live().messages, 1U);  // UCX's own memory, not a copy
  EXPECT_TRUE(holds_pattern(kept[1].data(), 1));
  std::vector<std::byte> into(big.size());
  kept[0].receive(into);
  EXPECT_TRUE(holds_pattern(into));
  EXPECT_FALSE(both.outcome(send));
  kept.clear();
  EXPECT_EQ(both.network().live().messages, 0U);
}

TEST(ActiveMessage, DeathBetweenHeaderAndPayload) {
  simulated_messages both;
  std::optional<message> held;
  std::vector<std::byte> into = blank(1U << 20U);
  both.receiver().on_message(1, [&](message came) { held = std::move(came); });
  const std::vector<std::byte> big = pattern(into.size());
  request send = both.sender.start_send(active_message{1, pattern(4)}, big);
  both.network().run_until([&] { return held.has_value(); });
  both.pair.reader_process.kill();
  both.settle(10ms);
  EXPECT_EQ(held->header().size(), 4U);
  request receive = held->start_receive(into);
  EXPECT_EQ(both.outcome(receive), errc::connection_reset);
  EXPECT_FALSE(held->peer().status() == std::error_code());
  send.cancel();
}

TEST(ActiveMessage, HandlerMayDestroyAnything) {
  simulated_messages both;
  std::optional<endpoint> back = both.back();
  int came = 0;
  both.receiver().on_message(1, [&](message) {
    ++came;
    both.receiver().on_message(1, {});  // itself
    back->close(close_mode::abort);
    back.reset();
  });
  std::error_code ec;
  request first = both.sender.start_send(active_message{1}, pattern(3));
  request second = both.sender.start_send(active_message{1}, pattern(3));
  both.settle(1s);
  EXPECT_EQ(came, 1);
}

TEST(ActiveMessage, HandlerReplacedInsideItselfGoesUnderNoLock) {
  simulated_pair_options options;
  options.owner_worker.thread_mode = thread_mode::multi;
  simulated_messages both(options);
  lock_probe lock(both.receiver());
  int gone = 0;
  int came = 0;
  const auto at_end = [&](int* held) {
    delete held;
    EXPECT_TRUE(lock.is_free());
    ++gone;
  };
  both.receiver().on_message(1, [&, held = std::shared_ptr<int>(new int(0), at_end)](message) {
    both.receiver().on_message(1, [&](message) { ++came; });
    both.receiver().on_message(2, [](message) {});  // where there is memory, not in its place
    EXPECT_EQ(gone, 0);
    EXPECT_EQ(++*held, 1);
  });
  for (int i = 0; i < 3; ++i) both.sender.send(active_message{1}, pattern(1));
  both.settle();
  EXPECT_EQ(gone, 1);
  EXPECT_EQ(came, 2);
}

TEST(ActiveMessage, WhoIsToldOfAnExceptionIsNotWaitedFor) {
  simulated_messages* messages = nullptr;
  std::vector<std::thread> others;
  int reports = 0;
  simulated_pair_options options;
  options.owner_worker.thread_mode = thread_mode::multi;
  options.owner_worker.on_exception = [&](std::exception_ptr) {
    ++reports;
    const auto removed = std::make_shared<std::promise<void>>();
    std::future<void> seen = removed->get_future();
    others.emplace_back([messages, removed] {
      messages->receiver().on_message(1, {});
      removed->set_value();
    });
    EXPECT_EQ(seen.wait_for(20s), std::future_status::ready) << "the handler is over";
  };
  simulated_messages both(options);
  messages = &both;
  both.receiver().on_message(1, [](message) { throw std::runtime_error("of the user's"); });
  both.sender.send(active_message{1}, pattern(1));
  both.settle();
  for (std::thread& each : others) each.join();
  EXPECT_EQ(reports, 1);
}

TEST(ActiveMessage, ThatNoHandlerSawGoesWithTheWorker) {
  simulated_messages both;
  both.receiver().on_message(1, [&](message) {});
  const std::vector<std::byte> big = pattern(1U << 20U);
  both.sender.send(active_message{1}, pattern(3));
  both.sender.send(9, pattern(100));
  request send = both.sender.start_send(active_message{1}, big);
  both.network().advance(30us);
}

// Closing one connection makes progress, in which messages of the others come.
TEST(ActiveMessage, ThatComesWhileTheWorkerEndsIsSeenByNobody) {
  simulated_pair pair;
  const std::vector<std::byte> bytes = pattern(100);
  std::vector<endpoint> senders;
  int called = 0;
  {
    worker ending(pair.owner_context, {.on_exception = [](const std::exception_ptr&) {
                    ADD_FAILURE() << "a handler threw";
                  }});
    ending.on_message(1, [&](message) { ++called; });
    for (int i = 0; i < 4; ++i) {
      senders.emplace_back(pair.reader, ending.address(),
                           endpoint_options{.wait = connect_wait::none});
      ASSERT_TRUE(pair.network.run_until([&] {
        ending.progress();
        return senders.back().state() == connection_state::active;
      }));
    }
    std::vector<request> sends;
    for (endpoint& each : senders) sends.push_back(each.start_send(active_message{1}, bytes));
    pair.network.advance(30us);
  }
  pair.network.advance(10ms);
  EXPECT_EQ(called, 0);
}

TEST(ActiveMessage, BlockingReceiveInAHandlerWouldDeadlock) {
  simulated_messages both;
  std::error_code ec;
  both.receiver().on_message(1, [&](message came) {
    std::vector<std::byte> into(came.length());
    came.receive(into, {}, ec);
  });
  const std::vector<std::byte> big = pattern(1U << 20U);
  request send = both.sender.start_send(active_message{1}, big);
  both.settle();
  EXPECT_EQ(ec, errc::would_deadlock);
  EXPECT_EQ(both.outcome(send), errc::message_refused);
}

TEST(EmptyMessage, HasNothing) {
  message none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none.info(), message_info());
  EXPECT_TRUE(none.header().empty());
  EXPECT_FALSE(none.has_payload());
  EXPECT_TRUE(none.data().empty());
  std::array<std::byte, 1> into{};
  EXPECT_EQ(none.start_receive(into).error(), errc::invalid_argument);
  EXPECT_EQ(none.peer().status(), errc::closed);
}

// Where UCX leaves its own memory to the receiver, as over shared memory, a message lies in it
// until nobody has it any more; a short one is copied.
TEST(ActiveMessage, ThatMayLastIsKeptWithoutACopy) {
  simulated_pair_options options;
  options.link.lasting_data = true;
  simulated_messages both(options);
  std::vector<message> kept;
  both.receiver().on_message(3, [&](message came) { kept.push_back(std::move(came)); });
  const auto given_back = [&] { return both.pair.owner_process.count(call::am_data_release); };
  for (const std::size_t size : {0U, 1U, 2047U}) {
    both.sender.send(active_message{3}, pattern(size, size), {.until = send_until::reusable});
    both.settle();
    ASSERT_EQ(kept.size(), 1U);
    EXPECT_EQ(both.network().live().messages, 0U) << "a copy of " << size;
    EXPECT_TRUE(holds_pattern(kept[0].data(), size));
    kept.clear();
    both.settle();
    EXPECT_EQ(given_back(), 0U);
  }
  std::uint64_t released = 0;
  for (const std::size_t size : {2048U, 30000U, 60000U}) {
    both.sender.send(active_message{3}, pattern(size, size), {.until = send_until::reusable});
    both.settle();
    ASSERT_EQ(kept.size(), 1U);
    EXPECT_EQ(both.network().live().messages, 1U) << "it lies where UCX put it: " << size;
    EXPECT_EQ(kept[0].data().size(), size);
    EXPECT_TRUE(holds_pattern(kept[0].data(), size));
    EXPECT_EQ(given_back(), released) << "somebody has it";
    kept.clear();
    both.settle();
    EXPECT_EQ(given_back(), ++released) << size;
    EXPECT_EQ(both.network().live().messages, 0U);
  }
  both.receiver().on_message(3, {});
}

}  // namespace
}  // namespace ucx::test
