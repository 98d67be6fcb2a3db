// Whatever is dropped first, with whatever in flight: nothing leaks, nothing is used after its end.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_region.hpp"
#include "worker/core_access.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

/// What goes on when things are dropped.
enum class moment {
  connecting,  ///< The owner has not answered yet.
  in_flight,   ///< Operations are on their way.
  stalled,     ///< The owner is stopped: nothing ends by itself.
  dying,       ///< The owner was killed, and nobody knows yet.
  dead,        ///< The connection is known to be lost.
  idle,        ///< Everything is done.
};
constexpr std::array moments{moment::connecting, moment::in_flight, moment::stalled,
                             moment::dying,      moment::dead,      moment::idle};

std::string name_of(moment when) {
  static constexpr std::array names{"Connecting", "InFlight", "Stalled", "Dying", "Dead", "Idle"};
  return names[static_cast<std::size_t>(when)];
}

worker_options quick() {
  worker_options options;
  options.connect_timeout = 100ms;
  options.operation_timeout = 200ms;
  options.close_timeout = 50ms;
  options.heartbeat_interval = 20ms;
  options.heartbeat_timeout = 100ms;
  return options;
}

/// Sizes with which a transfer takes several segments, and a write to a stopped owner gets stuck.
constexpr std::size_t written = std::size_t{96} << 10U;
constexpr std::size_t exposed_size = written + (std::size_t{32} << 10U);

link_options narrow() {
  link_options link;
  link.segment = 12U << 10U;
  link.socket_buffer = 32U << 10U;
  return link;
}

context made_context(fake_process& process) {
  context_options options;
  options.configuration["TX_SEG_SIZE"] = options.configuration["RX_SEG_SIZE"] = "12K";
  std::error_code ec;
  context made = detail::core_access::make_context(process.api(), options, ec);
  EXPECT_FALSE(ec);
  return made;
}

/// An owner that makes progress by itself, and everything that a reader has, droppable one by one.
class droppable {
 public:
  explicit droppable(moment when, std::uint64_t seed = 1) : network_(narrow(), seed) {
    owner_context_.emplace(made_context(owner_process_));
    context_.emplace(made_context(reader_process_));
    owner_.emplace(*owner_context_, quick());
    worker_.emplace(*context_, quick());
    owner_process_.on_pump([this] { owner_->progress(); });
    exposed_.emplace(*owner_context_, std::span<std::byte>(memory_), access::read_write);
    connection_.emplace(*worker_, owner_->address());
    region_.emplace(*connection_, exposed_->descriptor());
    if (when != moment::connecting) connection_->wait_connected();
    if (when == moment::stalled || when == moment::dying || when == moment::dead) {
      owner_process_.stop();
    }
    reads_ = region_->start_read_at(written, into_);
    writes_ = region_->start_write_at(0, from_);
    flushes_ = region_->start_flush();
    if (when == moment::dying || when == moment::dead) owner_process_.kill();
    if (when == moment::dead || when == moment::idle) {
      std::error_code ignored;
      reads_.wait(ignored);
      writes_.wait(ignored);
      flushes_.wait(ignored);
    }
  }

  ~droppable() {
    for (std::size_t i = 0; i < count; ++i) drop(i);
    owner_process_.resume();
    network_.advance(1s);
    exposed_.reset();
    owner_process_.on_pump({});
    owner_.reset();
    owner_context_.reset();
    network_.expect_clean();
  }

  static constexpr std::size_t count = 7;
  void drop(std::size_t which) {
    switch (which) {
      case 0:
        return context_.reset();
      case 1:
        return worker_.reset();
      case 2:
        return connection_.reset();
      case 3:
        return region_.reset();
      case 4:
        reads_ = request();
        return;
      case 5:
        writes_ = request();
        return;
      default:
        flushes_ = request();
        return;
    }
  }

  fake_network& network() { return network_; }
  worker& reader() { return *worker_; }
  endpoint& connection() { return *connection_; }
  request& read() { return reads_; }

 private:
  fake_network network_;
  fake_process& owner_process_ = network_.add_process("owner");
  fake_process& reader_process_ = network_.add_process("reader");
  std::vector<std::byte> memory_ = pattern(exposed_size);
  std::vector<std::byte> into_ = std::vector<std::byte>(exposed_size - written);
  std::vector<std::byte> from_ = std::vector<std::byte>(written);
  std::optional<context> owner_context_;
  std::optional<context> context_;
  std::optional<worker> owner_;
  std::optional<worker> worker_;
  std::optional<memory_region> exposed_;
  std::optional<endpoint> connection_;
  std::optional<remote_region> region_;
  request reads_;
  request writes_;
  request flushes_;
};

class Lifetime : public testing::TestWithParam<moment> {};

TEST_P(Lifetime, EverythingMayBeDroppedInAnyOrder) {
  std::array<std::size_t, droppable::count> order;
  std::iota(order.begin(), order.end(), 0U);
  // All orders of seven are too many to play at every moment: every 29th of them.
  int number = 0;
  do {
    if (number++ % 29 != 0) continue;
    droppable all(GetParam());
    const auto begin = all.network().now();
    for (const std::size_t each : order) all.drop(each);
    ASSERT_LT(all.network().now() - begin, 1s);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_P(Lifetime, EverythingMayBeDroppedInsideAHandler) {
  for (std::size_t first = 0; first < droppable::count; ++first) {
    for (std::size_t second = 0; second < droppable::count; ++second) {
      droppable all(GetParam());
      bool ran = false;
      worker& driver = all.reader();
      driver.post([&] {
        ran = true;
        all.drop(first == 1 ? 0 : first);  // the worker itself is still driven below
        all.drop(second == 1 ? 0 : second);
      });
      driver.progress();
      ASSERT_TRUE(ran);
    }
  }
}

TEST_P(Lifetime, RequestMayBeDroppedInItsOwnHandler) {
  droppable all(GetParam());
  int ran = 0;
  all.read().then([&](std::error_code) {
    ++ran;
    all.drop(4);
  });
  all.network().run_until(
      [&] {
        all.reader().progress();
        return ran > 0;
      },
      1s);
  EXPECT_EQ(ran, 1);
}

TEST_P(Lifetime, CloseIsBoundedAndIdempotent) {
  for (const close_mode mode : {close_mode::flush, close_mode::abort}) {
    droppable all(GetParam());
    const auto begin = all.network().now();
    std::error_code ec;
    all.connection().close(mode, ec);
    EXPECT_LT(all.network().now() - begin, 200ms);
    all.connection().close(close_mode::flush, ec);
    EXPECT_FALSE(ec);
    EXPECT_TRUE(all.read().done());
    EXPECT_EQ(all.connection().status(), errc::closed);
  }
}

INSTANTIATE_TEST_SUITE_P(Moments, Lifetime, testing::ValuesIn(moments),
                         [](const auto& when) { return name_of(when.param); });

TEST(OwnersLifetime, EverythingMayBeDroppedWhileAPeerReads) {
  std::array<std::size_t, 4> order{0, 1, 2, 3};
  do {
    simulated_pair pair({.link = narrow()});
    std::vector<std::byte> memory = pattern(4 * exposed_size);
    fake_process& process = pair.network.add_process("short-lived owner");
    std::error_code ec;
    std::optional<context> made(made_context(process));
    std::optional<worker> serving(std::in_place, *made, quick());
    std::optional<memory_region> exposed(std::in_place, *made, std::span<std::byte>(memory),
                                         access::read_write);
    std::optional<listener> listening(std::in_place, *serving, socket_address("127.0.0.1:0"));
    process.on_pump([&] {
      if (serving) serving->progress();
    });
    endpoint connection(pair.reader, listening->address());
    remote_region region(connection, exposed->descriptor());
    std::vector<std::byte> into(memory.size());
    request read = region.start_read_at(0, into);
    pair.network.advance(100us);
    for (const std::size_t each : order) {
      if (each == 0) made.reset();
      if (each == 1) serving.reset();
      if (each == 2) exposed.reset();
      if (each == 3) listening.reset();
    }
    process.on_pump({});
    read.wait(ec);
    EXPECT_TRUE(!ec || ec == errc::connection_reset || ec == errc::timed_out || ec == errc::revoked)
        << ec.message();
    if (!ec) {
      EXPECT_TRUE(holds_pattern(into));
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(OwnersLifetime, EndingWorkerAnswersNoGreeting) {
  simulated_pair pair;
  {
    worker doomed(pair.owner_context);
    endpoint connection(pair.reader, doomed.address());
    pair.network.advance(1ms);
    // UCX hands the greeting over while the worker goes.
  }
  pair.network.advance(1s);
}

TEST(OwnersLifetime, KnockingPeerKeepsNothingAlive) {
  simulated_pair pair;
  {
    worker brief(pair.owner_context, quick());
    const listener listening(brief, socket_address("127.0.0.1:0"));
    std::optional<endpoint> other(std::in_place, brief, pair.owner.address());
    // The knock lies in the socket when the last progress of this worker is that of closing.
    std::error_code ec;
    const endpoint knocking(pair.reader, listening.address(), {.connect_timeout = 1ms}, ec);
    EXPECT_EQ(ec, errc::timed_out);
    other.reset();
  }
}

}  // namespace
}  // namespace ucx::test
