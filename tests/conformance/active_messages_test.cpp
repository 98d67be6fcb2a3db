// Active messages, by the rows C9 to C18 of docs/explanation/comparisons.md.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <ucp/api/ucp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "conformance/message_fixture.hpp"
#include "support/basics/effort.hpp"
#include "support/bytes/pattern.hpp"
#include "ucx/buffer.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_resources.hpp"
#include "ucx/payload.hpp"
#include "ucx/receive_target.hpp"

namespace {

std::atomic<unsigned> buffers_given_back{0};

}  // namespace

/// In front of UCX's own, which it calls: counts.
extern "C" void ucp_am_data_release(ucp_worker_h worker, void* data) {
  static const auto of_ucx =
      reinterpret_cast<decltype(&ucp_am_data_release)>(::dlsym(RTLD_NEXT, "ucp_am_data_release"));
  ++buffers_given_back;
  of_ucx(worker, data);
}

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

class ConformanceCActive : public ConformanceC {};

TEST_P(ConformanceCActive, C9_C13_C16_C17_HandlersPlacePayload) {
  for (const std::size_t size : conformance_sizes) {
    const std::vector<std::byte> bytes = pattern(size, 1);
    std::vector<std::byte> into(size);
    std::optional<request> receive;
    std::atomic<bool> called{false};
    receiver().on_message(9, [&](message came) {
      EXPECT_TRUE(holds_pattern(came.header(), 2));
      EXPECT_EQ(came.header().size(), 300U);
      EXPECT_EQ(came.length(), size);
      receive = came.start_receive(into);
      called = true;
    });
    std::vector<std::byte> header = pattern(300, 2);
    request send = sender().start_send(active_message{9, header}, bytes);
    header.assign(300, std::byte{});  // it was copied
    ASSERT_TRUE(pair_.until([&] { return called.load(); }));
    EXPECT_FALSE(outcome(send));
    EXPECT_FALSE(outcome(*receive));
    EXPECT_TRUE(holds_pattern(into, 1)) << size;
    receiver().on_message(9, {});
  }
  request refused =
      sender().start_send(active_message{9}, pattern(1), {.until = send_until::matched});
  EXPECT_EQ(outcome(refused), errc::no_such_handler);
  const std::vector<std::byte> long_one(sender().max_header_size() + 1);
  EXPECT_EQ(sender().start_send(active_message{9, long_one}, std::span<const std::byte>()).error(),
            errc::header_too_long);
}

TEST_P(ConformanceCActive, C9_HandlersMayReply) {
  receiver().on_message(1, [](message asked) {
    request reply =
        asked.peer().start_send(asked.length(), asked.data(), {.memory = send_memory::copied});
    if (!reply.done()) ADD_FAILURE() << "a short copy is sent at once";
  });
  for (std::size_t size = 1; size < 30; ++size) {
    std::vector<std::byte> answer(size);
    request receive = sender().start_receive(size, answer);
    sender().send(active_message{1}, pattern(size, size));
    ASSERT_FALSE(outcome(receive));
    EXPECT_TRUE(holds_pattern(answer, size));
  }
  receiver().on_message(1, {});
}

TEST_P(ConformanceCActive, C6_C9_HandlersReceiveParts) {
  for (const std::size_t size : conformance_sizes) {
    const std::vector<std::byte> bytes = pattern(size);
    const std::array<std::span<const std::byte>, 3> parts{
        bytes, {}, std::span(bytes).first(size / 2)};
    message_parts received;
    std::optional<request> receive;
    std::atomic<bool> called{false};
    receiver().on_message(9, [&](message came) {
      receive = came.start_receive({received, 32 + 2 * size});
      called = true;
    });
    request send = sender().start_send(active_message{9}, payload::parts(parts),
                                       {.until = send_until::matched});
    ASSERT_TRUE(pair_.until([&] { return called.load(); }));
    EXPECT_FALSE(outcome(*receive));
    EXPECT_FALSE(outcome(send));
    ASSERT_EQ(received.size(), parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      EXPECT_EQ(received[i].size(), parts[i].size());
      EXPECT_TRUE(holds_pattern(received[i])) << size;
    }
    receiver().on_message(9, {});
  }
}

TEST_P(ConformanceCActive, C10_C11_HandlerAllocatesOrRefuses) {
  buffer_pool pool({.size = 1U << 20U, .count = 1});
  buffer place;
  std::optional<request> receive;
  std::atomic<int> called{0};
  receiver().on_message(9, [&](message came) {
    std::error_code none_left;
    buffer taken = pool.take({}, none_left);
    if (!none_left) {
      taken.resize(static_cast<std::size_t>(came.length()));
      receive = came.start_receive(taken.bytes());
      place = std::move(taken);
    }  // else it dies, and its sender is told
    ++called;
  });
  const std::vector<std::byte> bytes = pattern(1U << 20U);
  request first = sender().start_send(active_message{9}, bytes);
  request second = sender().start_send(active_message{9}, bytes);
  ASSERT_TRUE(pair_.until([&] { return called == 2; }));
  EXPECT_FALSE(outcome(first));
  EXPECT_EQ(outcome(second), errc::message_refused);
  EXPECT_FALSE(outcome(*receive));
  EXPECT_TRUE(holds_pattern(place.bytes()));
  receiver().on_message(9, {});
}

/// Counts what is allocated and not given back.
class counting_resource final : public std::pmr::memory_resource {
 public:
  int in_use() const noexcept { return in_use_; }

 private:
  void* do_allocate(std::size_t size, std::size_t alignment) override {
    void* const made = std::pmr::new_delete_resource()->allocate(size, alignment);
    ++in_use_;
    return made;
  }
  void do_deallocate(void* block, std::size_t size, std::size_t alignment) override {
    --in_use_;
    std::pmr::new_delete_resource()->deallocate(block, size, alignment);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  std::atomic<int> in_use_{0};
};

TEST_P(ConformanceCActive, C10_C11_ResourcesFollowTheSendersKind) {
  counting_resource of_device;
  counting_resource of_host;
  memory_resources known;
  known.add(memory_kind::cuda, of_device);
  known.add(memory_kind::host, of_host);
  struct wanted {
    memory_kind kind;
    missing_resource missing;
    counting_resource* taken;
  };
  const wanted cases[] = {
      {memory_kind::cuda, missing_resource::strict, &of_device},
      {memory_kind::host, missing_resource::strict, &of_host},
      {memory_kind::cuda_managed, missing_resource::fallback, &of_host},
      {memory_kind::cuda_managed, missing_resource::strict, nullptr},
  };
  for (const std::size_t size : {std::size_t{0}, std::size_t{1000}, std::size_t{1} << 20U}) {
    for (const wanted& each : cases) {
      const std::vector<std::byte> bytes = pattern(size);
      buffer made;
      std::optional<request> receive;
      std::atomic<bool> called{false};
      receiver().on_message(9, [&](message came) {
        EXPECT_EQ(came.info().memory, each.kind);
        receive = came.start_receive({made, known, size, each.missing});
        called = true;
      });
      request send = sender().start_send(active_message{9}, bytes,
                                         {.until = send_until::matched, .kind = each.kind});
      ASSERT_TRUE(pair_.until([&] { return called.load(); }));
      if (each.taken == nullptr) {
        EXPECT_EQ(outcome(*receive), errc::not_supported);
        EXPECT_FALSE(made);
        // One that was here has been taken; else its sender hears that nobody has it.
        const std::error_code told = outcome(send);
        EXPECT_EQ(told == errc::message_refused, size > 1000) << told.message();
      } else {
        EXPECT_FALSE(outcome(*receive));
        EXPECT_FALSE(outcome(send));
        EXPECT_EQ(made.size(), size);
        EXPECT_TRUE(holds_pattern(made.bytes()));
        EXPECT_EQ(each.taken->in_use(), 1);
      }
      made = buffer();
      EXPECT_EQ(of_device.in_use() + of_host.in_use(), 0);
      receiver().on_message(9, {});
    }
  }
}

TEST_P(ConformanceCActive, C18_HandlerKeepsDataForLater) {
  std::mutex mutex;
  std::vector<message> inbox;
  receiver().on_message(4, [&](message came) {
    const std::lock_guard guard(mutex);
    inbox.push_back(std::move(came));
  });
  for (std::size_t size = 0; size < 5; ++size)
    sender().send(active_message{4, pattern(size)}, pattern(9));
  ASSERT_TRUE(pair_.until([&] {
    const std::lock_guard guard(mutex);
    return inbox.size() == 5;
  }));
  const std::lock_guard guard(mutex);
  for (std::size_t size = 0; size < 5; ++size) {
    EXPECT_EQ(inbox[size].header().size(), size);
    EXPECT_TRUE(holds_pattern(inbox[size].data()));
  }
  inbox.clear();
}

/// What is kept lies where UCX received it, as UCX gets it back: of a copy it would get nothing.
/// UCX's TCP has one buffer for all that comes, so that the first copy is made there.
TEST_P(ConformanceCActive, C12_KeepsWhatCameWithoutASecondCopy) {
  // As much as a segment of UCX's own takes; ours are longer.
  const std::size_t size = std::min<std::size_t>(60000, sender().report().max_eager_size / 2);
  constexpr std::size_t count = 5;
  std::mutex mutex;
  std::vector<message> kept;
  std::vector<const std::byte*> places;
  receiver().on_message(6, [&](message came) {
    const std::lock_guard guard(mutex);
    places.push_back(came.data().data());
    kept.push_back(std::move(came));
  });
  const unsigned before = buffers_given_back;
  for (std::size_t i = 0; i < count; ++i) sender().send(active_message{6}, pattern(size, i));
  ASSERT_TRUE(pair_.until([&] {
    const std::lock_guard guard(mutex);
    return kept.size() == count;
  }));
  const std::lock_guard guard(mutex);
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(kept[i].data().size(), size);
    EXPECT_TRUE(holds_pattern(kept[i].data(), i));
    EXPECT_EQ(kept[i].data().data(), places[i]) << "it was copied when it was kept";
  }
  EXPECT_EQ(buffers_given_back, before) << "they are kept";
  kept.clear();
  const route over = pair_.options.over;
  const std::size_t lent = over == route::shared_memory || over == route::loopback ? count : 0;
  EXPECT_TRUE(pair_.until([&] { return buffers_given_back >= before + lent; }))
      << buffers_given_back - before << " of " << count << " were no copies";
  receiver().on_message(6, {});
}

TEST_P(ConformanceCActive, G6_NamesOfTwoOwnersAreApart) {
  std::atomic<int> tables{0};
  std::atomic<int> graphs{0};
  std::atomic<int> plain{0};
  receiver().on_message({"tables", 3}, [&](const message&) { ++tables; });
  receiver().on_message({"graphs", 3}, [&](const message&) { ++graphs; });
  receiver().on_message(3, [&](const message&) { ++plain; });
  for (int i = 0; i < 3; ++i) {
    if (i < 1) sender().send(active_message{message_name("tables", 3)}, pattern(1));
    if (i < 2) sender().send(active_message{message_name("graphs", 3)}, pattern(1));
    sender().send(active_message{3}, pattern(1));
  }
  EXPECT_TRUE(pair_.until([&] { return tables + graphs + plain == 6; }));
  EXPECT_EQ(tables, 1);
  EXPECT_EQ(graphs, 2);
  EXPECT_EQ(plain, 3);
  // Two owners of one hash can not share a worker.
  const message_name first("library-36869", 1);
  const message_name second("library-68354", 1);
  std::error_code ec;
  receiver().on_message(first, [](const message&) {});
  receiver().on_message(
      second, [](const message&) {}, ec);
  EXPECT_EQ(ec, errc::already_exists);
  receiver().on_message({"tables", 3}, {});
  receiver().on_message({"graphs", 3}, {});
  receiver().on_message(3, {});
  receiver().on_message(first, {});
}

TEST_P(ConformanceCActive, PeerThatLeavesBetweenHeaderAndPayload) {
  std::optional<message> kept;
  std::atomic<bool> called{false};
  receiver().on_message(9, [&](message came) {
    kept = std::move(came);
    called = true;
  });
  const std::vector<std::byte> bytes = pattern(1U << 20U);
  request send = sender().start_send(active_message{9, pattern(10)}, bytes);
  ASSERT_TRUE(pair_.until([&] { return called.load(); }));
  std::error_code ec;
  sender().close(close_mode::abort, ec);
  EXPECT_TRUE(outcome(send));
  std::vector<std::byte> into(bytes.size());
  request receive = kept->start_receive(into);
  EXPECT_TRUE(pair_.until([&] { return receive.done(); }));
  EXPECT_TRUE(receive.error());
  EXPECT_TRUE(holds_pattern(kept->header()));
  kept.reset();
  receiver().on_message(9, {});
}

// Three gibibytes out of one mebibyte, into one.
TEST(ConformanceCActiveLarge, C9_C14_C15_ThreeGibibytesAreOne) {
  message_pair pair(message_pair_options{});
  const std::vector<std::byte> bytes = pattern(std::size_t{1} << 20U);
  std::vector<std::byte> into(bytes.size());
  constexpr std::size_t mebibytes = effort_of_length(std::size_t{3} << 10U);
  const std::vector<std::span<const std::byte>> from(mebibytes, bytes);
  const std::vector<std::span<std::byte>> to(mebibytes, into);
  std::optional<request> receive;
  std::atomic<bool> called{false};
  pair.receiver().on_message(9, [&](message came) {
    EXPECT_EQ(came.length(), std::uint64_t{mebibytes} << 20U);
    receive = came.start_receive(to, {.timeout = 100s});
    called = true;
  });
  request send = pair.sender->start_send(active_message{9}, from, {.timeout = 100s});
  EXPECT_TRUE(pair.until([&] { return called && receive->done() && send.done(); }, 100s));
  EXPECT_FALSE(receive->error());
  EXPECT_FALSE(send.error());
  EXPECT_TRUE(holds_pattern(into));
  pair.receiver().on_message(9, {});
}

INSTANTIATE_TEST_SUITE_P(Messages, ConformanceCActive, testing::ValuesIn(every_message_pair()),
                         name_of_messages);
INSTANTIATE_TEST_SUITE_P(Adopted, ConformanceCActive, testing::ValuesIn(adopted_message_pairs()),
                         name_of_messages);

}  // namespace
}  // namespace ucx::test
