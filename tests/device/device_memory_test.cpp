#include "region/exposed/device_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/bytes/pattern.hpp"
#include "support/fake_cuda/cuda_program.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

using namespace std::chrono_literals;
using test::cuda_program;
using test::holds_pattern;
using test::pattern;

/// No thread begins while it lives: none finds room for such a stack.
class no_more_threads {
 public:
  no_more_threads() {
    ::pthread_getattr_default_np(&before_);
    ::pthread_attr_t none;
    ::pthread_attr_init(&none);
    ::pthread_attr_setstacksize(&none, std::size_t{1} << 47U);
    EXPECT_EQ(::pthread_setattr_default_np(&none), 0);
    ::pthread_attr_destroy(&none);
  }
  no_more_threads(const no_more_threads&) = delete;
  no_more_threads& operator=(const no_more_threads&) = delete;
  ~no_more_threads() {
    EXPECT_EQ(::pthread_setattr_default_np(&before_), 0);
    ::pthread_attr_destroy(&before_);
  }

 private:
  ::pthread_attr_t before_;
};

class DeviceMemory : public testing::Test {
 protected:
  std::shared_ptr<device_memory> borrow(std::span<std::byte> bytes) {
    return kept(device_memory::borrow(place_of(bytes.data()), bytes));
  }
  std::shared_ptr<device_memory> allocate(const memory_place& place, std::size_t size) {
    return kept(device_memory::allocate(place, size));
  }
  std::shared_ptr<device_memory> kept(result<std::shared_ptr<device_memory>> made) {
    if (!made) what_ = made.why().text;
    return std::move(made).or_tell(ec_);
  }

  const cuda_program program_;
  std::string what_;
  std::error_code ec_;
};

TEST_F(DeviceMemory, CopiesWhatIsThere) {
  const auto bytes = cuda_program::allocate_pattern(100'000, 7);
  const auto memory = borrow(bytes);
  ASSERT_FALSE(ec_) << what_;
  std::vector<std::byte> into(1000);
  EXPECT_FALSE(memory->read(99'000, into));
  EXPECT_TRUE(holds_pattern(into, 7, 99'000));
  EXPECT_FALSE(memory->write(10, pattern(50'000, 8)));
  const std::vector<std::byte> now = cuda_program::content(bytes);
  EXPECT_TRUE(holds_pattern(std::span(now).subspan(10, 50'000), 8));
}

TEST_F(DeviceMemory, ReadsNothingWithoutTheDriver) {
  const auto memory = borrow(cuda_program::allocate_pattern(1000));
  ASSERT_FALSE(ec_) << what_;
  std::vector<std::byte> into(10);
  EXPECT_EQ(memory->read_now(5, into), 0U);
}

TEST_F(DeviceMemory, IsReachedFromAnyThread) {
  const auto memory = borrow(cuda_program::allocate_pattern(1000));
  ASSERT_FALSE(ec_) << what_;
  cuda_program::use(1);
  std::vector<std::byte> into(1000);
  EXPECT_FALSE(memory->read(0, into));
  EXPECT_TRUE(holds_pattern(into));
  std::thread([&] {
    EXPECT_FALSE(memory->write(0, pattern(1000, 3)));
    EXPECT_EQ(fake_cuda_current(), 0U);
  }).join();
  EXPECT_FALSE(memory->read(0, into));
  EXPECT_TRUE(holds_pattern(into, 3));
}

TEST_F(DeviceMemory, IsAllocatedZeroedAndGoesWithItsOwner) {
  for (const memory_kind kind : {memory_kind::cuda, memory_kind::cuda_managed}) {
    auto memory = allocate({kind, 1}, 100'000);
    ASSERT_FALSE(ec_) << what_;
    EXPECT_EQ(memory->place(), (memory_place{kind, 1}));
    EXPECT_EQ(place_of(memory->where().data()), (memory_place{kind, 1}));
    std::vector<std::byte> into(100'000, std::byte{1});
    EXPECT_FALSE(memory->read(0, into));
    EXPECT_TRUE(test::all_bytes_are(into, std::byte{}));
    EXPECT_EQ(fake_cuda_allocated(), 100'000U);
    memory.reset();
    EXPECT_EQ(fake_cuda_allocated(), 0U);
    EXPECT_EQ(fake_cuda_streams(), 0U);
  }
}

TEST_F(DeviceMemory, IsOfTheFirstDeviceWhenNoneIsNamed) {
  const auto memory = allocate({memory_kind::cuda, -1}, 10);
  ASSERT_FALSE(ec_) << what_;
  EXPECT_EQ(memory->place(), (memory_place{memory_kind::cuda, 0}));
}

TEST_F(DeviceMemory, LargerThanItsDeviceIsNoMemory) {
  EXPECT_EQ(allocate({memory_kind::cuda, 0}, fake_cuda_device_size + 1), nullptr);
  EXPECT_EQ(ec_, errc::no_memory);
  EXPECT_THAT(what_, testing::HasSubstr("CUDA_ERROR_OUT_OF_MEMORY"));
}

TEST_F(DeviceMemory, OfADeviceThatIsNotThereIsNotSupported) {
  EXPECT_EQ(allocate({memory_kind::cuda, 2}, 10), nullptr);
  EXPECT_EQ(ec_, errc::not_supported);
}

TEST_F(DeviceMemory, BeyondItsAllocationIsAnInvalidArgument) {
  const auto bytes = cuda_program::allocate(1000);
  EXPECT_EQ(borrow({bytes.data(), 1'000'000}), nullptr);
  EXPECT_EQ(ec_, errc::invalid_argument);
}

TEST_F(DeviceMemory, OverTwoAllocationsIsAnInvalidArgument) {
  // The driver's memory is mapped by itself: the next one begins somewhere behind, or before.
  const auto one = cuda_program::allocate(1000);
  const auto two = cuda_program::allocate(1000);
  const auto begin = std::min(one.data(), two.data());
  const auto end = std::max(one.data(), two.data()) + 1000;
  EXPECT_EQ(borrow({begin, end}), nullptr);
  EXPECT_EQ(ec_, errc::invalid_argument);
  EXPECT_THAT(what_, testing::HasSubstr("of one allocation"));
}

TEST_F(DeviceMemory, MayBeAnyPartOfAnAllocation) {
  const auto bytes = cuda_program::allocate_pattern(1000);
  const auto memory = borrow(bytes.subspan(3, 501));
  ASSERT_FALSE(ec_) << what_;
  EXPECT_FALSE(memory->write(0, pattern(501, 9)));
  const std::vector<std::byte> now = cuda_program::content(bytes);
  EXPECT_TRUE(holds_pattern(std::span(now).first(3)));
  EXPECT_TRUE(holds_pattern(std::span(now).subspan(3, 501), 9));
  EXPECT_TRUE(holds_pattern(std::span(now).subspan(504), 0, 504));
}

TEST_F(DeviceMemory, GivesEverythingBackWhenWithdrawn) {
  CUctx_st* own = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&own, 0, 0), 0);
  const auto bytes = cuda_program::allocate_pattern(1000);
  const auto lent = borrow(bytes);
  ASSERT_FALSE(ec_) << what_;
  const auto memory = allocate({memory_kind::cuda, 1}, 1000);
  ASSERT_FALSE(ec_) << what_;
  std::vector<std::byte> into(1000);
  EXPECT_FALSE(lent->read(0, into));
  EXPECT_FALSE(memory->read(0, into));
  lent->withdraw();
  memory->withdraw();
  EXPECT_EQ(fake_cuda_streams(), 0U);
  EXPECT_EQ(fake_cuda_events(), 0U);
  EXPECT_EQ(fake_cuda_allocated(), 1000U);  // the program's
  ASSERT_EQ(cuCtxDestroy_v2(own), 0);
  EXPECT_EQ(lent->read(0, into), errc::revoked);
  EXPECT_EQ(fake_cuda_late_uses(), 0U);
}

TEST_F(DeviceMemory, FailedCallsLeaveNothingBehind) {
  for (const char* call :
       {"cuCtxPushCurrent", "cuStreamCreate", "cuMemAlloc", "cuEventCreate", "cuMemsetD8Async",
        "cuEventRecord", "cuEventQuery", "cuEventSynchronize", "copy"}) {
    fake_cuda_fail(call, 0, 1, 719);
    EXPECT_EQ(allocate({memory_kind::cuda, 0}, 1000), nullptr) << call;
    EXPECT_EQ(ec_, errc::io_error) << call;
    EXPECT_EQ(fake_cuda_allocated(), 0U) << call;
    EXPECT_EQ(fake_cuda_streams(), 0U) << call;
  }
}

TEST_F(DeviceMemory, IsGivenOutWhenTheDeviceHasSetItToZero) {
  fake_cuda_hold_copies(1);
  auto allocating = std::async(std::launch::async, [&] {
    return allocate({memory_kind::cuda, 0}, 1000);
  });
  ASSERT_TRUE(test::soon([] { return fake_cuda_waiting_copies() == 1; }));
  EXPECT_EQ(allocating.wait_for(50ms), std::future_status::timeout);
  fake_cuda_hold_copies(0);
  const auto memory = allocating.get();
  ASSERT_FALSE(ec_) << what_;
  EXPECT_EQ(cuda_program::content(memory->where()), std::vector<std::byte>(1000));
}

TEST_F(DeviceMemory, IsBusyWhereThereIsNoThreadToWaitForTheDevice) {
  {
    const no_more_threads while_it_asks;
    EXPECT_EQ(allocate({memory_kind::cuda, 0}, 1000), nullptr);
  }
  EXPECT_EQ(ec_, errc::busy);
  EXPECT_EQ(fake_cuda_allocated(), 0U);
  EXPECT_EQ(fake_cuda_streams(), 0U);
  EXPECT_NE(allocate({memory_kind::cuda, 0}, 1000), nullptr);
}

TEST_F(DeviceMemory, ThatAHungDeviceHasIsGivenBackBehindIt) {
  fake_cuda_hold_copies(1);
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(allocate({memory_kind::cuda, 0}, 1000), nullptr);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 60s);
  EXPECT_EQ(ec_, errc::timed_out);
  EXPECT_THAT(what_, testing::HasSubstr("setting them to zero"));
  // The driver may still write there.
  EXPECT_EQ(fake_cuda_allocated(), 1000U);
  EXPECT_EQ(fake_cuda_calls("cuMemFree"), 0U);
  fake_cuda_hold_copies(0);
  EXPECT_TRUE(test::soon([] {
    return fake_cuda_streams() == 0 && fake_cuda_allocated() == 0 && fake_cuda_events() == 0;
  }));
  EXPECT_EQ(fake_cuda_late_uses(), 0U);
}

TEST_F(DeviceMemory, IsKeptUntilTheDriverLetsGoOfACopyThatWasGivenUp) {
  auto memory = allocate({memory_kind::cuda, 0}, 1000);
  ASSERT_FALSE(ec_) << what_;
  fake_cuda_hold_copies(1);
  std::vector<std::byte> into(1000);
  EXPECT_EQ(memory->read(0, into), errc::timed_out);
  memory.reset();
  EXPECT_EQ(fake_cuda_calls("cuMemFree"), 0U);
  EXPECT_EQ(fake_cuda_allocated(), 1000U);
  fake_cuda_hold_copies(0);
  EXPECT_TRUE(test::soon([] { return fake_cuda_allocated() == 0; }));
  EXPECT_EQ(fake_cuda_late_uses(), 0U);
}

TEST_F(DeviceMemory, CopyThatFailsIsAnErrorAndTheNextOneIsNot) {
  const auto memory = borrow(cuda_program::allocate_pattern(1000));
  ASSERT_FALSE(ec_) << what_;
  std::vector<std::byte> into(1000);
  for (const char* call : {"cuEventCreate", "cuCtxPushCurrent", "cuMemcpyAsync", "cuEventRecord",
                           "cuEventQuery", "cuEventSynchronize", "copy"}) {
    fake_cuda_fail(call, 0, 1, 719);
    EXPECT_EQ(memory->read(0, into), errc::io_error) << call;
    fake_cuda_fail(call, 0, 0, 0);
    EXPECT_FALSE(memory->read(0, into)) << call;
    if (std::string(call) == "cuEventCreate") continue;  // it has one by now
    fake_cuda_fail(call, 0, 1, 2);
    EXPECT_EQ(memory->write(0, into), errc::no_memory) << call;
  }
  EXPECT_TRUE(holds_pattern(into));
}

TEST_F(DeviceMemory, PollsALongCopyFirstThenSleeps) {
  const auto memory = borrow(cuda_program::allocate_pattern(1000));
  ASSERT_FALSE(ec_) << what_;
  std::vector<std::byte> into(1000);
  fake_cuda_hold_copies(1);
  auto reading = std::async(std::launch::async, [&] { return memory->read(0, into); });
  ASSERT_TRUE(test::soon([] { return fake_cuda_calls("cuEventSynchronize") == 1; }));
  const std::uint64_t looks = fake_cuda_calls("cuEventQuery");
  EXPECT_GE(looks, 1U);
  EXPECT_EQ(reading.wait_for(50ms), std::future_status::timeout);
  EXPECT_EQ(fake_cuda_calls("cuEventQuery"), looks);
  fake_cuda_hold_copies(0);
  EXPECT_FALSE(reading.get());
  EXPECT_TRUE(holds_pattern(into));
}

TEST_F(DeviceMemory, InAContextThatEndedIsAnError) {
  CUctx_st* own = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&own, 0, 0), 0);
  const auto memory = borrow(cuda_program::allocate(1000));
  ASSERT_FALSE(ec_) << what_;
  ASSERT_EQ(cuCtxDestroy_v2(own), 0);
  std::vector<std::byte> into(1000);
  EXPECT_EQ(memory->read(0, into), errc::io_error);
}

TEST_F(DeviceMemory, WithdrawingWaitsForTheRunningCopy) {
  const auto memory = borrow(cuda_program::allocate_pattern(1000));
  ASSERT_FALSE(ec_) << what_;
  fake_cuda_hold_copies(1);
  std::vector<std::byte> into(1000);
  auto reading = std::async(std::launch::async, [&] { return memory->read(0, into); });
  ASSERT_TRUE(test::soon([] { return fake_cuda_waiting_copies() == 1; }));
  auto withdrawing = std::async(std::launch::async, [&] { memory->withdraw(); });
  EXPECT_EQ(withdrawing.wait_for(50ms), std::future_status::timeout);
  fake_cuda_hold_copies(0);
  withdrawing.get();
  EXPECT_FALSE(reading.get());
  EXPECT_TRUE(holds_pattern(into));
  EXPECT_EQ(memory->read(0, into), errc::revoked);
  EXPECT_EQ(memory->write(0, into), errc::revoked);
}

}  // namespace
}  // namespace ucx::detail
