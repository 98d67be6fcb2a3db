// What a program calls of the CUDA driver beside the library: of the driver that the library uses.
#pragma once

#include <dlfcn.h>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

struct CUctx_st;
struct CUstream_st;

namespace ucx::test {

/// Nobody where the driver has no such function.
template <class Function>
Function* driver_call(const char* name) {
  static void* const library = [] {
    const char* const named = std::getenv("UCXIO_CUDA_DRIVER");
    return ::dlopen(named != nullptr ? named : "libcuda.so.1", RTLD_NOW);
  }();
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(library, name));
}

/// A program that uses the first device, in its primary context or in one of its own, which is
/// current on the thread that makes this. Its own calls succeed, or no test makes sense.
class driver_program {
 public:
  enum class context { primary, own };

  explicit driver_program(context chosen = context::primary) : own_(chosen == context::own) {
    expect(call<int(unsigned)>("cuInit")(0));
    if (own_) {
      expect(call<int(CUctx_st**, unsigned, int)>("cuCtxCreate_v2")(&context_, 0, 0));
    } else {
      expect(call<int(CUctx_st**, int)>("cuDevicePrimaryCtxRetain")(&context_, 0));
      expect(call<int(CUctx_st*)>("cuCtxPushCurrent_v2")(context_));
    }
  }
  driver_program(const driver_program&) = delete;
  driver_program& operator=(const driver_program&) = delete;
  ~driver_program() {
    if (own_) {
      expect(call<int(CUctx_st*)>("cuCtxDestroy_v2")(context_));
      return;
    }
    CUctx_st* popped = nullptr;
    expect(call<int(CUctx_st**)>("cuCtxPopCurrent_v2")(&popped));
    expect(call<int(int)>("cuDevicePrimaryCtxRelease_v2")(0));
  }

  static std::span<std::byte> allocate(std::size_t size) {
    std::uint64_t made = 0;
    expect(call<int(std::uint64_t*, std::size_t)>("cuMemAlloc_v2")(&made, size));
    return {reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(made)), size};
  }
  static void free(std::span<std::byte> memory) {
    expect(call<int(std::uint64_t)>("cuMemFree_v2")(address(memory)));
  }
  static CUstream_st* make_stream() {
    CUstream_st* made = nullptr;
    constexpr unsigned non_blocking = 1;
    expect(call<int(CUstream_st**, unsigned)>("cuStreamCreate")(&made, non_blocking));
    return made;
  }
  static void end_stream(CUstream_st* stream) {
    expect(call<int(CUstream_st*)>("cuStreamDestroy_v2")(stream));
  }
  /// Enqueues the work of setting each byte.
  static void set(std::span<std::byte> memory, unsigned char value, CUstream_st* stream) {
    expect(call<int(std::uint64_t, unsigned char, std::size_t, CUstream_st*)>("cuMemsetD8Async")(
        address(memory), value, memory.size(), stream));
  }
  /// Enqueues a copy within the device.
  static void copy(std::span<std::byte> into, std::span<std::byte> from, CUstream_st* stream) {
    expect(call<int(std::uint64_t, std::uint64_t, std::size_t, CUstream_st*)>(
        "cuMemcpyDtoDAsync_v2")(address(into), address(from), from.size(), stream));
  }
  static void wait_for(CUstream_st* stream) {
    expect(call<int(CUstream_st*)>("cuStreamSynchronize")(stream));
  }

 private:
  template <class Function>
  static Function& call(const char* name) {
    Function* const found = driver_call<Function>(name);
    if (found == nullptr) std::abort();
    return *found;
  }
  static std::uint64_t address(std::span<std::byte> memory) {
    return reinterpret_cast<std::uintptr_t>(memory.data());
  }
  static void expect(int result) {
    if (result != 0) std::abort();
  }

  CUctx_st* context_ = nullptr;
  const bool own_;
};

}  // namespace ucx::test
