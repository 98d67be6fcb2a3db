// The senders under the algorithms of NVIDIA's stdexec. Not a part of the usual build: stdexec.txt
// has the commit of stdexec that these pass with, and README.md says how they are run.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <stdexec/execution.hpp>

#include "support/bytes/pattern.hpp"
#include "support/transports/connected_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/execution.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

struct Stdexec : testing::Test {
  connected_pair pair{{.over = route::loopback, .owner = progress_mode::caller}};
  memory_region owned = pair.allocate(4096);
  remote_region region = pair.open(owned);
  std::vector<std::byte> into = std::vector<std::byte>(100);

  Stdexec() {
    const std::vector<std::byte> filled = pattern(4096);
    region.write_at(0, filled);
    region.flush();
  }
  template <class Sender>
  auto wait(Sender&& sender) {
    return sync_wait(pair.reader(), std::forward<Sender>(sender));
  }
};

static_assert(stdexec::sender<decltype(async_read_at(std::declval<remote_region&>(), 0,
                                                     std::span<std::byte>()))>);

TEST_F(Stdexec, LetValueChainsAReadAWriteAndAFlush) {
  EXPECT_TRUE(wait(async_read_at(region, 0, std::span(into)) |
                   stdexec::let_value([&] { return async_write_at(region, 1000, into); }) |
                   stdexec::let_value([&] { return async_flush(region); })));
  std::vector<std::byte> copied(100);
  region.read_at(1000, copied);
  EXPECT_EQ(copied, into);
  EXPECT_TRUE(holds_pattern(into));
}

TEST_F(Stdexec, WhenAllReadsSeveralPiecesAndThenComputes) {
  auto all = stdexec::when_all(async_read_at(region, 0, std::span(into).first(50)),
                               async_read_at(region, 50, std::span(into).last(50)),
                               async_read_at(region, 0, buffer(10))) |
             stdexec::then([&](const buffer& last) { return last.size() + into.size(); });
  const auto size = wait(std::move(all));
  EXPECT_EQ(std::get<0>(size.value()), 110U);
  EXPECT_TRUE(holds_pattern(into));
}

TEST_F(Stdexec, UponErrorGetsTheCode) {
  const auto told = wait(async_read_at(region, 4096, std::span(into)) |
                         stdexec::then([]() noexcept { return std::error_code(); }) |
                         stdexec::upon_error([](std::error_code ec) noexcept { return ec; }));
  EXPECT_EQ(std::get<0>(told.value()), errc::out_of_range);
}

TEST_F(Stdexec, WithTextThrowsTheLibrarysError) {
  EXPECT_THROW(wait(with_text(async_read_at(region, 4096, std::span(into)))), error);
}

TEST_F(Stdexec, AnErrorOfWhenAllStopsTheOthers) {
  std::vector<std::byte> message(10);
  const auto told = wait(stdexec::when_all(async_receive(pair.reader(), 7, message),
                                           async_read_at(region, 4096, std::span(into))) |
                         stdexec::then([](message_info) noexcept { return std::error_code(); }) |
                         stdexec::upon_error([](std::error_code ec) noexcept { return ec; }));
  EXPECT_EQ(std::get<0>(told.value()), errc::out_of_range);
}

TEST_F(Stdexec, StoppedAsOptionalIsEmptyAfterAStopOfAnotherThread) {
  std::vector<std::byte> message(10);
  stdexec::inplace_stop_source stop;
  std::jthread other([&] { stop.request_stop(); });
  const auto told =
      wait(stdexec::write_env(async_receive(pair.reader(), 7, message),
                              stdexec::prop{stdexec::get_stop_token, stop.get_token()}) |
           stdexec::stopped_as_optional());
  EXPECT_FALSE(std::get<0>(told.value()));
}

TEST_F(Stdexec, ItsOwnSyncWaitNeedsAThreadThatDrives) {
  connected_pair driven({.over = route::tcp_by_address, .reader = progress_mode::sleeping_thread});
  const memory_region memory = driven.allocate(100);
  remote_region of = driven.open(memory);
  EXPECT_TRUE(stdexec::sync_wait(async_read_at(of, 0, std::span(into))));
}

static_assert(stdexec::scheduler<worker_scheduler>);

TEST_F(Stdexec, ContinuesOnTheThreadThatDrives) {
  const worker_scheduler scheduler(pair.reader());
  const auto where = wait(stdexec::just() | stdexec::continues_on(scheduler) |
                          stdexec::then([]() noexcept { return std::this_thread::get_id(); }));
  EXPECT_EQ(std::get<0>(where.value()), std::this_thread::get_id());
  EXPECT_TRUE(wait(scheduler.schedule_after(1ms)));
}

}  // namespace
}  // namespace ucx::test
