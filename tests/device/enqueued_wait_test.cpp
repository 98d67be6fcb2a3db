// Streams of the program's that wait for the end of an operation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/fake_cuda/cuda_program.hpp"
#include "support/transports/connected_pair.hpp"
#include "support/transports/message_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_region.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t size = 100'000;

CUstream_st* make_stream() {
  CUstream_st* made = nullptr;
  EXPECT_EQ(cuStreamCreate(&made, 0), 0);
  return made;
}

void enqueue_copy(CUstream_st* stream, std::span<std::byte> into, std::span<const std::byte> from) {
  EXPECT_EQ(
      cuMemcpyAsync(cuda_program::address(into), cuda_program::address(from), from.size(), stream),
      0);
}

/// Work on a stream of which it can be seen whether it was done.
class stream_work {
 public:
  explicit stream_work(CUstream_st* stream) : stream_(stream) {
    cuda_program::put(seen_, {&no, 1});
  }

  void enqueue() { EXPECT_EQ(cuMemsetD8Async(cuda_program::address(seen_), 1, 1, stream_), 0); }
  /// Looks after the device had every opportunity to do it.
  bool is_done() const {
    for (int i = 0; i < 40; ++i) {
      EXPECT_EQ(cuMemsetD8Async(cuda_program::address(spare_), 1, 1, other_), 0);
    }
    EXPECT_EQ(cuStreamSynchronize(other_), 0);
    return cuda_program::content(seen_)[0] == std::byte{1};
  }
  bool is_done_behind() const {
    EXPECT_EQ(cuStreamSynchronize(stream_), 0);
    return is_done();
  }

 private:
  static constexpr std::byte no{0};
  CUstream_st* const stream_;
  CUstream_st* const other_ = make_stream();
  const std::span<std::byte> seen_ = cuda_program::allocate(1);
  const std::span<std::byte> spare_ = cuda_program::allocate(1);
};

/// The owner answers nothing while it is paused, so that operations stay in flight.
class EnqueuedWait : public testing::Test {
 protected:
  explicit EnqueuedWait(progress_mode reader = progress_mode::sleeping_thread)
      : pair_(options_of(reader)) {
    cuda_program::put(tensor_, pattern(size, 1));
    fill_pattern(exposed_.bytes(), 5);
    pair_.connection->wait_connected();
  }
  static pair_options options_of(progress_mode reader) {
    pair_options options;
    options.owner = progress_mode::external;
    options.reader = reader;
    options.reader_defaults.heartbeat_timeout = 20s;
    options.reader_defaults.close_timeout = 100ms;  // the owner may be paused by then
    return options;
  }
  request start_stuck_read() {
    pair_.pause_owner();
    return region_.start_read_at(0, tensor_);
  }
  std::error_code refusal(request& waited, void* stream) {
    std::error_code ec;
    waited.enqueue_wait(stream, ec);
    return ec;
  }

  const cuda_program program_;
  connected_pair pair_;
  const std::span<std::byte> tensor_ = cuda_program::allocate(size);
  memory_region exposed_ = pair_.allocate(size);
  remote_region region_ = pair_.open(exposed_);
  CUstream_st* const stream_ = make_stream();
};

TEST_F(EnqueuedWait, HoldsBackWhatIsEnqueuedUntilTheBytesAreThere) {
  std::vector<std::byte> seen(size);
  request read = start_stuck_read();
  read.enqueue_wait(stream_);
  enqueue_copy(stream_, seen, tensor_);
  stream_work behind(stream_);
  behind.enqueue();
  EXPECT_FALSE(behind.is_done());
  EXPECT_FALSE(read.done());
  pair_.resume_owner();
  EXPECT_TRUE(behind.is_done_behind());
  EXPECT_TRUE(read.done());
  EXPECT_FALSE(read.error());
  EXPECT_TRUE(holds_pattern(seen, 5));
}

TEST_F(EnqueuedWait, LeavesWhatWasEnqueuedBeforeAlone) {
  request read = start_stuck_read();
  stream_work before(stream_);
  stream_work behind(stream_);
  before.enqueue();
  read.enqueue_wait(stream_);
  behind.enqueue();
  EXPECT_TRUE(before.is_done());
  EXPECT_FALSE(behind.is_done());
  pair_.resume_owner();
  EXPECT_TRUE(behind.is_done_behind());
}

TEST_F(EnqueuedWait, CountsForMemoryOfTheHostsToo) {
  std::vector<std::byte> host(size);
  for (int round = 0; round < 20; ++round) {
    std::fill(host.begin(), host.end(), std::byte{});
    request read = region_.start_read_at(0, host);
    read.enqueue_wait(stream_);
    enqueue_copy(stream_, tensor_, host);
    ASSERT_EQ(cuStreamSynchronize(stream_), 0);
    ASSERT_TRUE(holds_pattern(cuda_program::content(tensor_), 5));
    ASSERT_FALSE(read.error());
  }
}

TEST_F(EnqueuedWait, LetsAKernelOverwriteWhatWasWritten) {
  for (int round = 0; round < 20; ++round) {
    cuda_program::put(tensor_, pattern(size, 7));
    request write = region_.start_write_at(0, tensor_);
    write.enqueue_wait(stream_);
    EXPECT_EQ(cuMemsetD8Async(cuda_program::address(tensor_), 0, size, stream_), 0);
    ASSERT_EQ(cuStreamSynchronize(stream_), 0);
    ASSERT_FALSE(write.error());
    region_.flush();
    ASSERT_TRUE(holds_pattern(exposed_.bytes(), 7));
  }
}

TEST_F(EnqueuedWait, IsThereForFlushesAndMessages) {
  const std::vector<std::byte> few = pattern(10);
  pair_.pause_owner();
  request write = region_.start_write_at(0, few);
  request flush = region_.start_flush();
  flush.enqueue_wait(stream_);
  stream_work behind(stream_);
  behind.enqueue();
  EXPECT_FALSE(behind.is_done());
  pair_.resume_owner();
  EXPECT_TRUE(behind.is_done_behind());

  message_pair messages(message_pair_options{});
  std::vector<std::byte> sent = pattern(size, 3);
  request receive = messages.receiver().start_receive(tag_match(7), tensor_);
  receive.enqueue_wait(stream_);
  std::vector<std::byte> seen(size);
  enqueue_copy(stream_, seen, tensor_);
  messages.sender->send(7, sent);
  EXPECT_EQ(cuStreamSynchronize(stream_), 0);
  EXPECT_FALSE(receive.error());
  EXPECT_TRUE(holds_pattern(seen, 3));
}

TEST_F(EnqueuedWait, FollowsTheWorkThatTheOperationItselfWaitsFor) {
  const std::vector<std::byte> made = pattern(size, 2);
  fake_cuda_hold_stream(stream_, 1);
  enqueue_copy(stream_, tensor_, made);
  request write = region_.start_write_at(0, tensor_, {.cuda_stream = stream_});
  write.enqueue_wait(stream_);
  stream_work behind(stream_);
  behind.enqueue();
  // Behind the first one's end, because its own memory is read behind the stream.
  const std::span<std::byte> other = cuda_program::allocate_pattern(10, 9);
  request second = region_.start_write_at(0, other, {.cuda_stream = stream_});
  fake_cuda_hold_stream(stream_, 0);
  EXPECT_TRUE(behind.is_done_behind());
  EXPECT_TRUE(write.done());
  second.wait();
  region_.flush();
  EXPECT_TRUE(holds_pattern(exposed_.bytes().first(10), 9));
  EXPECT_TRUE(holds_pattern(exposed_.bytes().subspan(10), 2, 10));
}

TEST_F(EnqueuedWait, EndsWithACancellation) {
  request read = start_stuck_read();
  read.enqueue_wait(stream_);
  stream_work behind(stream_);
  behind.enqueue();
  EXPECT_FALSE(behind.is_done());
  read.cancel();
  EXPECT_TRUE(behind.is_done_behind());
  EXPECT_EQ(read.error(), errc::canceled);
}

TEST_F(EnqueuedWait, EndsWithTheLossOfTheRequest) {
  std::optional<request> read = start_stuck_read();
  read->enqueue_wait(stream_);
  stream_work behind(stream_);
  behind.enqueue();
  EXPECT_FALSE(behind.is_done());
  read.reset();
  EXPECT_TRUE(behind.is_done_behind());
}

TEST_F(EnqueuedWait, EndsWithTheConnection) {
  request read = start_stuck_read();
  read.enqueue_wait(stream_);
  stream_work behind(stream_);
  behind.enqueue();
  EXPECT_FALSE(behind.is_done());
  pair_.connection->close(close_mode::abort);
  EXPECT_TRUE(behind.is_done_behind());
  EXPECT_TRUE(read.error());
}

TEST_F(EnqueuedWait, EndsWithTheWorkerAndAllThatWasMadeOfIt) {
  std::optional<request> read = start_stuck_read();
  read->enqueue_wait(stream_);
  stream_work behind(stream_);
  behind.enqueue();
  EXPECT_FALSE(behind.is_done());
  { const remote_region gone = std::move(region_); }
  pair_.connection.reset();
  pair_.other.reset();
  EXPECT_FALSE(behind.is_done());  // the request keeps what it needs
  read.reset();
  EXPECT_TRUE(behind.is_done_behind());
}

TEST_F(EnqueuedWait, GoesOnInTheFutureThatTheRequestBecomes) {
  request read = start_stuck_read();
  read.enqueue_wait(stream_);
  std::future<message_info> future = std::move(read).to_future();
  stream_work behind(stream_);
  behind.enqueue();
  EXPECT_FALSE(behind.is_done());
  pair_.resume_owner();
  EXPECT_TRUE(behind.is_done_behind());
  future.get();
}

TEST_F(EnqueuedWait, MayBeOfManyStreamsAndManyOperations) {
  pair_.pause_owner();
  const std::span<std::byte> second_half = tensor_.subspan(size / 2);
  request first = region_.start_read_at(0, tensor_.first(size / 2));
  request second = region_.start_read_at(size / 2, second_half);
  CUstream_st* const other = make_stream();
  first.enqueue_wait(stream_);
  second.enqueue_wait(stream_);
  second.enqueue_wait(other);
  second.enqueue_wait(other);
  stream_work of_both(stream_);
  stream_work of_second(other);
  of_both.enqueue();
  of_second.enqueue();
  EXPECT_FALSE(of_both.is_done());
  second.cancel();
  EXPECT_TRUE(of_second.is_done_behind());
  EXPECT_FALSE(of_both.is_done());
  pair_.resume_owner();
  EXPECT_TRUE(of_both.is_done_behind());
  EXPECT_FALSE(first.error());
}

TEST_F(EnqueuedWait, UsesTheSameMemoryAgainAndAgain) {
  for (std::uint64_t round = 0; round < 300; ++round) {
    std::vector<std::byte> into(10);
    std::vector<std::byte> seen(10);
    request read = region_.start_read_at(round, into);
    read.enqueue_wait(stream_);
    enqueue_copy(stream_, seen, into);
    ASSERT_EQ(cuStreamSynchronize(stream_), 0);
    ASSERT_TRUE(holds_pattern(seen, 5, round));
  }
  EXPECT_EQ(fake_cuda_registered(), 4096U);
  EXPECT_EQ(fake_cuda_calls("cuMemHostRegister"), 1U);
}

TEST_F(EnqueuedWait, IsBusyBeyondSoManyAtATime) {
  std::optional<request> read = start_stuck_read();
  for (int i = 0; i < 1024; ++i) ASSERT_EQ(refusal(*read, stream_), std::error_code()) << i;
  EXPECT_EQ(refusal(*read, stream_), errc::busy);
  stream_work behind(stream_);
  behind.enqueue();
  EXPECT_FALSE(behind.is_done());
  read.reset();
  EXPECT_TRUE(behind.is_done_behind());
  request again = region_.start_read_at(0, tensor_);
  EXPECT_EQ(refusal(again, stream_), std::error_code());
  pair_.resume_owner();
  again.wait();
}

TEST_F(EnqueuedWait, OfWhatIsDoneIsNone) {
  std::vector<std::byte> into(10);
  request read = region_.start_read_at(0, into);
  read.wait();
  read.enqueue_wait(stream_);
  request().enqueue_wait(stream_);
  EXPECT_EQ(fake_cuda_calls("cuStreamWaitValue32"), 0U);
}

TEST_F(EnqueuedWait, TakesStreamsOfAnyContext) {
  std::optional<request> read = start_stuck_read();
  CUctx_st* own = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&own, 0, 1), 0);
  CUstream_st* const theirs = make_stream();
  CUctx_st* popped = nullptr;
  ASSERT_EQ(cuCtxPopCurrent_v2(&popped), 0);
  read->enqueue_wait(theirs);
  read->enqueue_wait(stream_);
  stream_work here(stream_);
  here.enqueue();
  EXPECT_FALSE(here.is_done());
  ASSERT_EQ(cuCtxPushCurrent_v2(own), 0);
  stream_work there(theirs);
  there.enqueue();
  EXPECT_FALSE(there.is_done());
  pair_.resume_owner();
  EXPECT_TRUE(there.is_done_behind());
  ASSERT_EQ(cuCtxPopCurrent_v2(&popped), 0);
  EXPECT_TRUE(here.is_done_behind());
  // One that is over in the middle changes nothing for the others.
  request next = start_stuck_read();
  CUctx_st* brief = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&brief, 0, 1), 0);
  next.enqueue_wait(make_stream());
  ASSERT_EQ(cuCtxDestroy_v2(brief), 0);
  next.enqueue_wait(stream_);
  pair_.resume_owner();
  EXPECT_EQ(cuStreamSynchronize(stream_), 0);
  EXPECT_FALSE(next.error());
}

TEST_F(EnqueuedWait, RefusesWhatIsNoStreamOrCaptures) {
  request read = start_stuck_read();
  EXPECT_EQ(refusal(read, nullptr), errc::invalid_argument);
  fake_cuda_capture_stream(stream_, 1);
  EXPECT_EQ(refusal(read, stream_), errc::invalid_argument);
  fake_cuda_capture_stream(stream_, 0);
  CUctx_st* popped = nullptr;
  ASSERT_EQ(cuCtxPopCurrent_v2(&popped), 0);
  void* const legacy = reinterpret_cast<void*>(1);
  EXPECT_EQ(refusal(read, legacy), errc::invalid_argument);  // of which context?
  ASSERT_EQ(cuCtxPushCurrent_v2(popped), 0);
  EXPECT_EQ(fake_cuda_calls("cuStreamWaitValue32"), 0U);
  try {
    fake_cuda_capture_stream(stream_, 1);
    read.enqueue_wait(stream_);
    ADD_FAILURE() << "a stream that captures was taken";
  } catch (const ucx::error& failure) {
    EXPECT_THAT(failure.what(), testing::HasSubstr("capturing a graph"));
    EXPECT_THAT(failure.what(), testing::HasSubstr(read.description()));
  }
  pair_.resume_owner();
  read.wait();
}

TEST_F(EnqueuedWait, LeavesTheGraphsOfOtherStreamsAlone) {
  request read = start_stuck_read();
  fake_cuda_begin_capture();
  EXPECT_EQ(refusal(read, stream_), std::error_code());
  EXPECT_NE(fake_cuda_end_capture(), 0);
  pair_.resume_owner();
  EXPECT_EQ(cuStreamSynchronize(stream_), 0);
  EXPECT_FALSE(read.error());
}

TEST_F(EnqueuedWait, RegistersAnewWhereTheContextIsAnotherOne) {
  request read = start_stuck_read();
  read.enqueue_wait(stream_);
  fake_cuda_fail("cuMemHostGetDevicePointer", 0, 1, 1);
  EXPECT_EQ(refusal(read, stream_), std::error_code());
  EXPECT_EQ(fake_cuda_calls("cuMemHostGetDevicePointer"), 3U);
  pair_.resume_owner();
  EXPECT_EQ(cuStreamSynchronize(stream_), 0);
  EXPECT_FALSE(read.error());
}

/// Nobody but the calls of the test's drives the reader.
class UndrivenWait : public EnqueuedWait {
 protected:
  UndrivenWait() : EnqueuedWait(progress_mode::caller) {}
};

TEST_F(UndrivenWait, EndsAtTheDeadlineWhichTheOperationHasMissed) {
  std::vector<std::byte> into(100);
  request read = region_.start_read_at(0, into, {.timeout = 100ms});
  read.enqueue_wait(stream_);
  stream_work behind(stream_);
  behind.enqueue();
  EXPECT_TRUE(behind.is_done_behind());
  EXPECT_FALSE(read.done());
  std::error_code ec;
  read.wait(ec);  // the owner has answered, but the stream went on without
  EXPECT_EQ(ec, errc::timed_out);
  EXPECT_EQ(read.error(), errc::timed_out);
}

TEST_F(UndrivenWait, EndsAtTheEarliestDeadlineFirst) {
  pair_.pause_owner();
  CUstream_st* const other = make_stream();
  request late = region_.start_read_at(0, tensor_);
  request early = region_.start_read_at(0, tensor_, {.timeout = 50ms});
  late.enqueue_wait(other);
  early.enqueue_wait(stream_);
  EXPECT_EQ(cuStreamSynchronize(stream_), 0);
  stream_work of_late(other);
  of_late.enqueue();
  EXPECT_FALSE(of_late.is_done());
  std::error_code ec;
  early.wait(ec);
  EXPECT_EQ(ec, errc::timed_out);
  pair_.resume_owner();
  late.wait();
  EXPECT_TRUE(of_late.is_done_behind());
}

TEST_F(UndrivenWait, EndsWhereARequestIsLostInsideAHandler) {
  pair_.pause_owner();
  std::optional<request> read = region_.start_read_at(0, tensor_);
  read->enqueue_wait(stream_);
  stream_work behind(stream_);
  behind.enqueue();
  pair_.other->post([&] { read.reset(); });
  EXPECT_TRUE(pair_.drive_until([&] { return !read; }));
  EXPECT_TRUE(behind.is_done_behind());
}

TEST_F(UndrivenWait, IsNotSupportedInAForkedChild) {
  GTEST_FLAG_SET(death_test_style, "fast");
  request read = start_stuck_read();
  read.enqueue_wait(stream_);
  EXPECT_EXIT(std::_Exit(refusal(read, stream_) == errc::not_supported ? 0 : 1),
              testing::ExitedWithCode(0), "");
  stream_work behind(stream_);
  behind.enqueue();
  EXPECT_FALSE(behind.is_done());
  pair_.resume_owner();
  read.wait();
  EXPECT_TRUE(behind.is_done_behind());
}

/// What fails, by its name in cuda.h.
class EnqueuedWaitOfAFailingDriver : public EnqueuedWait,
                                     public testing::WithParamInterface<const char*> {};

TEST_P(EnqueuedWaitOfAFailingDriver, SaysWhatFailedAndHoldsNothing) {
  request read = start_stuck_read();
  fake_cuda_fail(GetParam(), 0, 1, 719);
  try {
    read.enqueue_wait(stream_);
    ADD_FAILURE() << "the driver had failed";
  } catch (const ucx::error& failure) {
    EXPECT_EQ(failure.code(), errc::io_error);
    EXPECT_THAT(failure.what(), testing::HasSubstr(GetParam()));
    EXPECT_THAT(failure.what(), testing::HasSubstr("CUDA_ERROR_LAUNCH_FAILED"));
  }
  stream_work behind(stream_);
  behind.enqueue();
  EXPECT_TRUE(behind.is_done_behind());
  read.enqueue_wait(stream_);
  behind.enqueue();
  pair_.resume_owner();
  read.wait();
  EXPECT_TRUE(holds_pattern(cuda_program::content(tensor_), 5));
}

INSTANTIATE_TEST_SUITE_P(Calls, EnqueuedWaitOfAFailingDriver,
                         testing::Values("cuStreamGetCtx", "cuStreamIsCapturing",
                                         "cuCtxPushCurrent", "cuMemHostRegister",
                                         "cuMemHostGetDevicePointer", "cuStreamWaitValue32"),
                         [](const auto& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace ucx::test
