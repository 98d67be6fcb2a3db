// One connection of messages that several threads of either side share: tags, active messages and
// the byte stream at once, on workers that are safe.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/transports/message_pair.hpp"
#include "ucx/error.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t senders = 3;  // of each kind of message, and as many receivers
constexpr std::uint64_t rounds = 60;
constexpr std::size_t record_size = 1000;  // of the stream: a number, and its pattern

/// Short ones, some that need a segment of their own, and a few that are announced.
std::size_t size_of(std::uint64_t round) {
  if (round % 20 == 7) return 400'000;
  return round % 3 == 0 ? 20'000 : 8 + round;
}

std::vector<std::byte> record(std::uint64_t number) {
  std::vector<std::byte> made(record_size);
  std::memcpy(made.data(), &number, sizeof number);
  fill_pattern(std::span(made).subspan(sizeof number), number);
  return made;
}

class SharedEndpoint : public testing::TestWithParam<message_pair_options> {
 protected:
  /// Calls `work(which)` on so many threads at once, beside those that are there.
  template <class Work>
  void share(std::vector<std::jthread>& threads, Work work) {
    for (std::uint64_t which = 0; which < senders; ++which) {
      threads.emplace_back([this, work, which] {
        work(which);
        ++over_;
      });
    }
  }
  /// Those of the receiver's side may still wait for what the sender's has to answer, when none
  /// of its own is left to drive it.
  void drive_until_over(std::size_t count) {
    EXPECT_TRUE(pair_.until([&] { return over_ == count; }));
  }
  void right(bool is_right) {
    if (!is_right) ++wrong_;
  }

  /// Each thread has a tag of its own, and sees what it got in order.
  void share_tags(std::vector<std::jthread>& threads, endpoint& from, endpoint& into) {
    share(threads, [&](std::uint64_t which) {
      for (std::uint64_t round = 0; round < rounds; ++round) {
        std::error_code ec;
        from.send(100 + which, pattern(size_of(round), round), {}, ec);
        right(!ec);
      }
    });
    share(threads, [&](std::uint64_t which) {
      std::vector<std::byte> place(400'000);
      for (std::uint64_t round = 0; round < rounds; ++round) {
        std::error_code ec;
        const message_info came = into.receive(100 + which, place, {}, ec);
        right(!ec && came.length == size_of(round) &&
              holds_pattern(std::span(place).first(size_of(round)), round));
      }
    });
  }

  /// All threads write into the same stream: what one call writes stays together.
  void share_stream(std::vector<std::jthread>& threads, endpoint& from, endpoint& into) {
    share(threads, [&](std::uint64_t which) {
      for (std::uint64_t round = 0; round < rounds; ++round) {
        std::error_code ec;
        from.stream_send(record(which * rounds + round), {}, ec);
        right(!ec);
      }
    });
    threads.emplace_back([this, &into] {
      std::vector<std::byte> place(record_size);
      std::vector<std::uint64_t> next(senders, 0);
      for (std::uint64_t count = 0; count < senders * rounds; ++count) {
        std::error_code ec;
        into.stream_receive(place, stream_amount::all, {}, ec);
        std::uint64_t number = 0;
        std::memcpy(&number, place.data(), sizeof number);
        const std::uint64_t which = number / rounds;
        right(!ec && which < senders && number % rounds == next[which]++ &&
              place == record(number));
        if (which >= senders) break;
      }
      ++over_;
    });
  }

  void share_active_messages(std::vector<std::jthread>& threads, endpoint& from) {
    share(threads, [&](std::uint64_t which) {
      for (std::uint64_t round = 0; round < rounds; ++round) {
        std::error_code ec;
        from.send(active_message{which, pattern(16, round)}, pattern(8 + round, round),
                  {.until = send_until::matched}, ec);
        right(!ec);
      }
    });
  }
  /// Nobody sends what these receive, nor receives what they send.
  void share_cancels(std::vector<std::jthread>& threads, endpoint& over) {
    share(threads, [&](std::uint64_t which) {
      const std::vector<std::byte> announced = pattern(400'000);
      std::vector<std::byte> place(100);
      for (std::uint64_t round = 0; round < rounds; ++round) {
        request receive = over.start_receive(900 + which, place);
        request send = over.start_send(950 + which, announced);
        (round % 2 == 0 ? send : receive).cancel();
        (round % 2 == 0 ? receive : send).cancel();
        for (request* const each : {&receive, &send}) {
          std::error_code ec;
          each->wait(ec);
          right(ec == errc::canceled);
        }
      }
    });
  }

  message_pair pair_{GetParam()};
  std::atomic<int> wrong_{0};
  std::atomic<std::size_t> over_{0};  // so many threads
};

TEST_P(SharedEndpoint, CarriesMessagesOfManyThreads) {
  endpoint back = pair_.back();
  std::atomic<std::uint64_t> handled{0};
  for (std::uint64_t which = 0; which < senders; ++which) {
    pair_.receiver().on_message(which, [&, next = std::uint64_t{0}](message came) mutable {
      right(came.length() == 8 + next && holds_pattern(came.data(), next) &&
            holds_pattern(came.header(), next));
      ++next;
      ++handled;
    });
  }
  {
    std::vector<std::jthread> threads;
    share_tags(threads, *pair_.sender, back);
    share_stream(threads, *pair_.sender, back);
    share_active_messages(threads, *pair_.sender);
    share_cancels(threads, *pair_.sender);
    drive_until_over(threads.size());
  }
  // The last send may be told before its handler has come to its end.
  EXPECT_TRUE(pair_.until([&] { return handled == senders * rounds; }));
  EXPECT_EQ(wrong_, 0);
  EXPECT_FALSE(pair_.sender->status());
  for (std::uint64_t which = 0; which < senders; ++which) pair_.receiver().on_message(which, {});
}

TEST_P(SharedEndpoint, CarriesThemBothWaysAtOnce) {
  endpoint back = pair_.back();
  {
    std::vector<std::jthread> threads;
    share_tags(threads, *pair_.sender, back);
    share_tags(threads, back, *pair_.sender);
    share_stream(threads, *pair_.sender, back);
    share_stream(threads, back, *pair_.sender);
    drive_until_over(threads.size());
  }
  EXPECT_EQ(wrong_, 0);
  EXPECT_FALSE(pair_.sender->status());
}

/// Posts tell their keys while other threads make more of them.
TEST_P(SharedEndpoint, TellsEachKeyOnce) {
  std::vector<std::atomic<int>> told(senders * rounds);
  message_handlers handlers;
  handlers.on_sent = [&](std::uint64_t key, std::error_code how) {
    right(!how);
    ++told[key];
  };
  pair_.sender->set_message_handlers(std::move(handlers));
  {
    std::vector<std::jthread> threads;
    share(threads, [&](std::uint64_t which) {
      for (std::uint64_t round = 0; round < rounds; ++round) {
        std::error_code ec;
        const std::vector<std::byte> bytes = pattern(size_of(round), round);
        pair_.sender->post_send(100 + which, bytes, which * rounds + round,
                                {.memory = send_memory::copied}, ec);
        right(!ec);
      }
    });
    share(threads, [&](std::uint64_t which) {
      std::vector<std::byte> place(400'000);
      for (std::uint64_t round = 0; round < rounds; ++round) {
        std::error_code ec;
        pair_.receiver().receive(100 + which, place, {}, ec);
        right(!ec && holds_pattern(std::span(place).first(size_of(round)), round));
      }
    });
    // Those that post drive nothing. A send that has ended may still wait in UCX for room at the
    // receiver, so the sender is driven until the last message is received.
    drive_until_over(threads.size());
    EXPECT_TRUE(pair_.until([&] {
      return std::all_of(told.begin(), told.end(),
                         [](const std::atomic<int>& each) { return each > 0; });
    }));
  }
  EXPECT_EQ(wrong_, 0);
  for (const std::atomic<int>& each : told) EXPECT_EQ(each, 1);
}

std::vector<message_pair_options> shared_pairs() {
  std::vector<message_pair_options> all;
  for (const route over : {route::tcp_by_listener, route::tcp_by_address, route::shared_memory}) {
    all.push_back({over, progress_mode::caller, progress_mode::sleeping_thread});
  }
  all.push_back({route::tcp_by_address, progress_mode::external, progress_mode::polling_thread});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Pairs, SharedEndpoint, testing::ValuesIn(shared_pairs()),
                         name_of_messages);

}  // namespace
}  // namespace ucx::test
