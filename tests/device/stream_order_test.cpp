// Operations behind what the program has enqueued on a stream of its device.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <span>
#include <system_error>
#include <thread>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/fake_cuda/cuda_program.hpp"
#include "support/transports/connected_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/stream.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t size = 100'000;

/// By message, and where the owner's memory is mapped.
class StreamOrder : public testing::TestWithParam<route> {
 protected:
  StreamOrder() {
    cuda_program::put(tensor_, pattern(size, 1));
    fill_pattern(exposed_.bytes(), 5);
    EXPECT_EQ(cuStreamCreate(&stream_, 0), 0);
    fake_cuda_hold_stream(stream_, 1);
  }
  /// Enqueues work that the device does when `stream_` is let go.
  void enqueue_copy(std::span<std::byte> into, std::span<const std::byte> from) {
    EXPECT_EQ(cuMemcpyAsync(cuda_program::address(into), cuda_program::address(from), from.size(),
                            stream_),
              0);
  }
  io_options behind_stream() const {
    io_options made;
    made.cuda_stream = stream_;
    return made;
  }

  const cuda_program program_;
  connected_pair pair_{{GetParam()}};
  const std::span<std::byte> tensor_ = cuda_program::allocate(size);
  const std::vector<std::byte> other_ = pattern(size, 2);
  memory_region exposed_ = pair_.allocate(size);
  remote_region region_ = pair_.open(exposed_);
  CUstream_st* stream_ = nullptr;
};

TEST_P(StreamOrder, WriteTakesWhatTheStreamHasPutThere) {
  enqueue_copy(tensor_, other_);
  io_options options = behind_stream();
  options.timeout = 100ms;
  std::error_code ec;
  region_.write_at(0, tensor_, options, ec);
  EXPECT_EQ(ec, errc::timed_out);  // it waits for the stream
  region_.flush({}, ec);
  auto letting_go = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(20ms);
    fake_cuda_hold_stream(stream_, 0);
  });
  region_.write_at(0, tensor_, behind_stream());
  region_.flush();
  EXPECT_TRUE(holds_pattern(exposed_.bytes(), 2));
}

TEST_P(StreamOrder, DefaultStreamsNeedNoHandle) {
  for (const std::uintptr_t number : {1UL, 2UL}) {  // CU_STREAM_LEGACY and _PER_THREAD
    io_options options;
    options.cuda_stream = reinterpret_cast<void*>(number);
    region_.write_at(0, tensor_, options);
    region_.flush();
    EXPECT_TRUE(holds_pattern(exposed_.bytes(), 1));
    fill_pattern(exposed_.bytes(), 5);
    const std::span<std::byte> into = cuda_program::allocate(size);
    region_.read_at(0, into, options);
    EXPECT_EQ(cuda_program::content(into), pattern(size, 5));
  }
}

TEST_P(StreamOrder, WriteOfNoStreamTakesWhatIsThere) {
  enqueue_copy(tensor_, other_);
  region_.write_at(0, tensor_);
  region_.flush();
  EXPECT_TRUE(holds_pattern(exposed_.bytes(), 1));
}

TEST_P(StreamOrder, ReadReplacesNothingThatTheStreamHasYetToUse) {
  std::vector<std::byte> seen(size);
  enqueue_copy(seen, tensor_);
  auto letting_go = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(20ms);
    fake_cuda_hold_stream(stream_, 0);
  });
  region_.read_at(0, tensor_, behind_stream());
  EXPECT_TRUE(holds_pattern(seen, 1));
  // What is enqueued now finds what was read.
  enqueue_copy(seen, tensor_);
  EXPECT_EQ(cuStreamSynchronize(stream_), 0);
  EXPECT_TRUE(holds_pattern(seen, 5));
}

TEST_P(StreamOrder, ReadOfNoStreamWaitsForNothing) {
  std::vector<std::byte> seen(size);
  enqueue_copy(seen, tensor_);
  region_.read_at(0, tensor_);
  fake_cuda_hold_stream(stream_, 0);
  EXPECT_EQ(cuStreamSynchronize(stream_), 0);
  EXPECT_TRUE(holds_pattern(seen, 5));
}

TEST_P(StreamOrder, IsToldToStreamsByTheirOptions) {
  enqueue_copy(tensor_, other_);
  stream_options options;
  options.cuda_stream = stream_;
  ucx::ostream out(pair_.open(exposed_), options);
  auto letting_go = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(20ms);
    fake_cuda_hold_stream(stream_, 0);
  });
  out.write(reinterpret_cast<const char*>(tensor_.data()), size);
  out.flush();
  ASSERT_TRUE(out.good());
  EXPECT_TRUE(holds_pattern(exposed_.bytes(), 2));
}

TEST_P(StreamOrder, CountsForWhatFitsTheBufferOfAStreamToo) {
  enqueue_copy(tensor_, other_);
  stream_options options;
  options.cuda_stream = stream_;
  ucx::iostream both(pair_.open(exposed_), options);
  both.get();
  auto letting_go = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(20ms);
    fake_cuda_hold_stream(stream_, 0);
  });
  // Out of the buffer, but not before the stream's copy has been there.
  both.read(reinterpret_cast<char*>(tensor_.data()), 10);
  ASSERT_TRUE(both.good());
  const std::vector<std::byte> now = cuda_program::content(tensor_);
  EXPECT_TRUE(holds_pattern(std::span(now).first(10), 5, 1));
  EXPECT_TRUE(holds_pattern(std::span(now).subspan(10), 2, 10));
}

TEST_P(StreamOrder, StreamOfAnotherContextIsAnInvalidArgument) {
  CUctx_st* own = nullptr;
  CUstream_st* foreign = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&own, 0, 0), 0);
  ASSERT_EQ(cuStreamCreate(&foreign, 0), 0);
  io_options options;
  options.cuda_stream = foreign;
  std::error_code ec;
  region_.write_at(0, tensor_, options, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  region_.read_at(0, tensor_, options, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  std::vector<std::byte> host(size);
  region_.read_at(0, host, options);  // is nobody's business here
  EXPECT_TRUE(holds_pattern(host, 5));
  EXPECT_TRUE(holds_pattern(cuda_program::content(tensor_), 1));
}

INSTANTIATE_TEST_SUITE_P(Routes, StreamOrder, testing::Values(route::tcp_by_address, route::mapped),
                         [](const auto& instance) { return to_string(instance.param); });

}  // namespace
}  // namespace ucx::test
