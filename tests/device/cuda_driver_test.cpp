#include "cuda/cuda_driver.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "cuda/cuda_context.hpp"
#include "support/fake_cuda/cuda_program.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

using test::cuda_program;

TEST(CudaDriver, IsNobodyWhereThereIsNoLibrary) {
  bool lacks_functions = true;
  EXPECT_EQ(cuda_driver::load("/nowhere/libcuda.so.1", lacks_functions), nullptr);
  EXPECT_FALSE(lacks_functions);
}

TEST(CudaDriver, IsNobodyWhereTheLibraryLacksItsFunctions) {
  bool lacks_functions = false;
  EXPECT_EQ(cuda_driver::load("libc.so.6", lacks_functions), nullptr);
  EXPECT_TRUE(lacks_functions);
}

TEST(CudaDriver, HasEveryFunctionWhenItIsFound) {
  bool lacks_functions = false;
  const auto loaded = cuda_driver::load(FAKE_CUDA, lacks_functions);
  ASSERT_NE(loaded, nullptr);
  EXPECT_NE(loaded->init, nullptr);
  EXPECT_NE(loaded->error_text, nullptr);
  EXPECT_TRUE(loaded->shares_memory());
}

TEST(CudaDriver, IsInUseWhenSomebodyHasInitialisedIt) {
  fake_cuda_reset(1, 1);
  EXPECT_FALSE(cuda_driver::find()->is_in_use());
  EXPECT_EQ(fake_cuda_calls("cuInit"), 0U);
  const cuda_program program;
  EXPECT_TRUE(cuda_driver::find()->is_in_use());
}

TEST(CudaDriver, IsFoundOnceAndInitialisesNothing) {
  fake_cuda_reset(1, 1);
  const cuda_driver* other = nullptr;
  std::thread([&] { other = cuda_driver::find(); }).join();
  EXPECT_NE(cuda_driver::find(), nullptr);
  EXPECT_EQ(cuda_driver::find(), other);
  EXPECT_EQ(fake_cuda_calls("cuInit"), 0U);
}

TEST(CudaError, SaysWhatTheCallerCanDo) {
  EXPECT_FALSE(cuda_error(cuda::success));
  EXPECT_EQ(cuda_error(cuda::out_of_memory), errc::no_memory);
  EXPECT_EQ(cuda_error(cuda::invalid_value), errc::invalid_argument);
  EXPECT_EQ(cuda_error(cuda::no_device), errc::not_supported);
  EXPECT_EQ(cuda_error(cuda::not_initialized), errc::not_supported);
  EXPECT_EQ(cuda_error(cuda::illegal_address), errc::io_error);
  EXPECT_EQ(cuda_error(12345), errc::io_error);
}

TEST(CudaWords, NameTheCallAndTheDriversOwn) {
  const cuda_driver& driver = *cuda_driver::find();
  EXPECT_EQ(cuda_words(driver, "cuMemAlloc", cuda::out_of_memory),
            "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY, what the pretended driver says of it");
  EXPECT_EQ(cuda_words(driver, "cuMemAlloc", 12345), "cuMemAlloc: CUDA error 12345");
}

TEST(CudaContext, RetainsThePrimaryOneWhileItLives) {
  fake_cuda_reset(2, 1);
  auto context = cuda_context::of_device(1).or_throw();
  EXPECT_EQ(context->device(), 1);
  EXPECT_EQ(fake_cuda_contexts(), 1U);
  context.reset();
  EXPECT_EQ(fake_cuda_contexts(), 0U);
}

TEST(CudaContext, IsTheOneThatAnAddressBelongsTo) {
  const cuda_program program(2, 1, 1);
  const auto memory = cuda_program::allocate(100);
  CUctx_st* own = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&own, 0, 0), 0);
  const auto other = cuda_program::allocate(100);
  const auto first = cuda_context::of_address(&memory[99]).or_throw();
  const auto second = cuda_context::of_address(other.data()).or_throw();
  EXPECT_EQ(first->device(), 1);
  EXPECT_EQ(second->device(), 0);
  EXPECT_EQ(second->handle(), own);
}

TEST(CudaContext, IsCurrentNoLongerThanItIsWanted) {
  fake_cuda_reset(1, 1);
  const auto context = cuda_context::of_device(0).or_throw();
  {
    const current_context outer(*context);
    const current_context inner(*context);
    EXPECT_EQ(inner.result(), cuda::success);
    EXPECT_EQ(fake_cuda_current(), 2U);
  }
  EXPECT_EQ(fake_cuda_current(), 0U);
}

TEST(CudaContext, SaysWhichCallFailed) {
  for (const char* call : {"cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain"}) {
    fake_cuda_reset(1, 1);
    fake_cuda_fail(call, 0, 1, cuda::out_of_memory);
    const auto made = cuda_context::of_device(0);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.why().code, errc::no_memory);
    EXPECT_THAT(made.why().text, testing::HasSubstr(call));
    EXPECT_THAT(made.why().text, testing::HasSubstr("CUDA_ERROR_OUT_OF_MEMORY"));
    EXPECT_EQ(fake_cuda_contexts(), 0U);
  }
}

TEST(CudaContext, IsNotSupportedWithoutSuchADevice) {
  std::error_code ec;
  fake_cuda_reset(0, 1);
  EXPECT_EQ(cuda_context::of_device(0).or_tell(ec), nullptr);
  EXPECT_EQ(ec, errc::not_supported);
  fake_cuda_reset(1, 1);
  EXPECT_EQ(cuda_context::of_device(1).or_tell(ec), nullptr);
  EXPECT_EQ(ec, errc::not_supported);
}

TEST(CurrentContext, LeavesAThreadItsModeOfCapturing) {
  const cuda_program program;
  const auto context = cuda_context::of_device(0).or_throw();
  fake_cuda_begin_capture();
  {
    const current_context outer(*context);
    const current_context inner(*context);
    cuda::event event = nullptr;
    EXPECT_EQ(context->driver().event_create(&event, 0), cuda::success);
  }
  EXPECT_NE(fake_cuda_end_capture(), 0);
  fake_cuda_begin_capture();
  std::uint64_t made = 0;
  EXPECT_NE(cuMemAlloc_v2(&made, 10), 0);  // of the program's, which asked for it
  EXPECT_EQ(fake_cuda_end_capture(), 0);
}

TEST(CudaContext, LeavesAThreadItsModeOfCapturing) {
  fake_cuda_reset(1, 1);
  const auto context = cuda_context::of_device(0).or_throw();
  fake_cuda_begin_capture();
  std::uint64_t made = 0;
  EXPECT_EQ(cuMemAlloc_v2(&made, 10), 900);  // of the program's, which asked for it
  EXPECT_EQ(fake_cuda_end_capture(), 0);
}

TEST(CudaContext, OfAnAddressIsRetainedWhereItIsThePrimaryOne) {
  const cuda_program program;
  const auto memory = cuda_program::allocate(100);
  auto context = cuda_context::of_address(memory.data()).or_throw();
  EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(0), 0);  // the program's
  EXPECT_EQ(fake_cuda_contexts(), 1U);
  context.reset();
  EXPECT_EQ(fake_cuda_contexts(), 0U);
}

TEST(CudaContext, OfMemoryThatIsFreedIsAnError) {
  const cuda_program program;
  const auto memory = cuda_program::allocate(100);
  cuda_program::free(memory);
  std::error_code ec;
  EXPECT_EQ(cuda_context::of_address(memory.data()).or_tell(ec), nullptr);
  EXPECT_EQ(ec, errc::io_error);
}

TEST(CudaContext, OfADeviceIsTheOneInUseOrNone) {
  const cuda_program program(2, 1, 1);
  EXPECT_NE(cuda_context::primary_in_use(1), nullptr);
  EXPECT_EQ(cuda_context::primary_in_use(0), nullptr);
  EXPECT_EQ(cuda_context::primary_in_use(2), nullptr);
  EXPECT_EQ(fake_cuda_contexts(), 1U);
}

TEST(CurrentContext, SaysWhyItIsNot) {
  const cuda_program program;
  CUctx_st* own = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&own, 0, 0), 0);
  const auto memory = cuda_program::allocate(100);
  const auto context = cuda_context::of_address(memory.data()).or_throw();
  ASSERT_EQ(cuCtxDestroy_v2(own), 0);
  const std::size_t before = fake_cuda_current();
  {
    const current_context gone(*context);
    EXPECT_EQ(gone.result(), cuda::invalid_context);
  }
  EXPECT_EQ(fake_cuda_current(), before);
}

}  // namespace
}  // namespace ucx::detail
