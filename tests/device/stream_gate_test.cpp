#include "cuda/stream_wait_value.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "support/basics/soon.hpp"
#include "support/fake_cuda/cuda_program.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

using namespace std::chrono_literals;

class StreamGate : public testing::Test {
 protected:
  StreamGate() { EXPECT_EQ(cuStreamCreate(&stream_, 0), 0); }

  std::unique_ptr<stream_wait_value> shut(const cuda_driver& driver, clock::time_point until) {
    auto made = stream_wait_value::shut(driver, stream_, until);
    if (!made) what_ = made.why().text;
    return std::move(made).or_tell(ec_);
  }
  std::unique_ptr<stream_wait_value> shut(clock::time_point until = clock::time_point::max()) {
    return shut(*driver_, until);
  }
  /// Returns whether the stream comes to the end of what is enqueued.
  static bool passes(CUstream_st* stream) { return cuStreamSynchronize(stream) == 0; }
  static void enqueue_byte(CUstream_st* stream, std::span<std::byte> into, unsigned char value) {
    EXPECT_EQ(cuMemsetD8Async(test::cuda_program::address(into), value, 1, stream), 0);
  }
  /// Returns whether the stream does not do what is enqueued, though the device has every
  /// opportunity.
  bool is_held() {
    const auto mark = test::cuda_program::allocate(1);
    const auto spare = test::cuda_program::allocate(1);
    CUstream_st* other = nullptr;
    EXPECT_EQ(cuStreamCreate(&other, 0), 0);
    enqueue_byte(other, mark, 0);
    EXPECT_TRUE(passes(other));
    enqueue_byte(stream_, mark, 1);
    for (int i = 0; i < 40; ++i) enqueue_byte(other, spare, 1);
    EXPECT_TRUE(passes(other));
    return test::cuda_program::content(mark)[0] == std::byte{0};
  }

  const test::cuda_program program_;
  bool lacks_functions_ = false;
  const std::unique_ptr<const cuda_driver> driver_ = cuda_driver::load(FAKE_CUDA, lacks_functions_);
  CUstream_st* stream_ = nullptr;
  std::string what_;
  std::error_code ec_;
};

TEST_F(StreamGate, IsOpenedWhenItGoes) {
  auto gate = shut();
  ASSERT_NE(gate, nullptr) << what_;
  EXPECT_TRUE(is_held());
  EXPECT_TRUE(gate->claim());
  EXPECT_TRUE(is_held());
  gate.reset();
  EXPECT_TRUE(passes(stream_));
}

TEST_F(StreamGate, IsOpenedWhenItsTimeIsOverAndCanNotBeClaimedThen) {
  const auto gate = shut(clock::now() + 20ms);
  ASSERT_NE(gate, nullptr) << what_;
  EXPECT_TRUE(passes(stream_));
  EXPECT_FALSE(gate->claim());
}

TEST_F(StreamGate, ThatWasClaimedStaysShutForAsLongAsItLives) {
  std::unique_ptr<stream_wait_value> claimed;
  clock::time_point until;
  for (auto wait = 50ms; wait < 30s; wait *= 2) {
    until = clock::now() + wait;
    claimed = shut(until);
    ASSERT_NE(claimed, nullptr) << what_;
    if (claimed->claim()) break;  // else this thread was not run in time
    claimed.reset();
  }
  ASSERT_NE(claimed, nullptr);
  CUstream_st* other = nullptr;
  ASSERT_EQ(cuStreamCreate(&other, 0), 0);
  const auto later = stream_wait_value::shut(*driver_, other, until + 10ms).or_throw();
  EXPECT_TRUE(passes(other));
  EXPECT_TRUE(is_held());
  claimed.reset();
  EXPECT_TRUE(passes(stream_));
}

TEST_F(StreamGate, MayBeShutAfterTheThreadThatLooksAfterThemHasGone) {
  const auto threads = [] {
    using std::filesystem::directory_iterator;
    return std::distance(directory_iterator("/proc/self/task"), directory_iterator());
  };
  const auto before = threads();
  ASSERT_NE(shut(), nullptr) << what_;
  EXPECT_TRUE(test::soon([&] { return threads() <= before; }));
  const auto gate = shut(clock::now() + 10ms);
  EXPECT_TRUE(passes(stream_));
}

TEST_F(StreamGate, IsNotSupportedByADriverThatLacksIt) {
  cuda_driver lacking = *driver_;
  lacking.stream_wait_value = nullptr;
  EXPECT_FALSE(lacking.holds_streams());
  EXPECT_EQ(shut(lacking, clock::time_point::max()), nullptr);
  EXPECT_EQ(ec_, errc::not_supported);
  EXPECT_THAT(what_, testing::HasSubstr("wait for memory"));
}

TEST_F(StreamGate, HasToBeAllowedBeforeCuda117) {
  cuda_driver older = *driver_;
  EXPECT_FALSE(older.wait_value_has_to_be_allowed);
  older.wait_value_has_to_be_allowed = true;
  EXPECT_EQ(shut(older, clock::time_point::max()), nullptr);
  EXPECT_EQ(ec_, errc::not_supported);
  EXPECT_THAT(what_, testing::HasSubstr("NVreg_EnableStreamMemOPs"));
  fake_cuda_allow_stream_mem_ops(1);
  EXPECT_NE(shut(older, clock::time_point::max()), nullptr) << what_;
  EXPECT_TRUE(passes(stream_));
}

TEST_F(StreamGate, OfAParentIsNotOpenedByItsChild) {
  GTEST_FLAG_SET(death_test_style, "fast");
  auto gate = shut();
  ASSERT_NE(gate, nullptr) << what_;
  const auto lose = [&] {
    gate.reset();
    std::_Exit(0);
  };
  EXPECT_EXIT(lose(), testing::ExitedWithCode(0), "");
  EXPECT_TRUE(is_held());
  gate.reset();
  EXPECT_TRUE(passes(stream_));
}

}  // namespace
}  // namespace ucx::detail
