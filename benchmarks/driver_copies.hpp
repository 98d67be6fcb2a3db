// The CUDA driver itself: its copies, on a stream of their own, are what ours are measured against.
#pragma once

#include <dlfcn.h>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace ucx::benchmarks {

/// In the primary context of the first device. REQUIRES: there is one.
class driver_copies {
 public:
  driver_copies() {
    void* context = nullptr;
    expect(find<int(unsigned)>("cuInit")(0));
    expect(find<int(void**, int)>("cuDevicePrimaryCtxRetain")(&context, 0));
    expect(find<int(void*)>("cuCtxPushCurrent_v2")(context));
    constexpr unsigned non_blocking = 1;
    expect(find<int(void**, unsigned)>("cuStreamCreate")(&stream_, non_blocking));
  }
  driver_copies(const driver_copies&) = delete;
  driver_copies& operator=(const driver_copies&) = delete;

  /// Returns memory of the device, until the process ends.
  std::byte* allocate(std::size_t size) const {
    std::uint64_t address = 0;
    expect(find<int(std::uint64_t*, std::size_t)>("cuMemAlloc_v2")(&address, size));
    return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));
  }
  /// Returns when the bytes are there. REQUIRES: the thread that made it.
  void copy(void* into, const void* from, std::size_t size) {
    expect(start_(reinterpret_cast<std::uintptr_t>(into), reinterpret_cast<std::uintptr_t>(from),
                  size, stream_));
    expect(wait_(stream_));
  }

 private:
  template <class Function>
  Function& find(const char* name) const {
    void* const found = library_ != nullptr ? ::dlsym(library_, name) : nullptr;
    if (found == nullptr) fail(name);
    return *reinterpret_cast<Function*>(found);
  }
  static void expect(int result) {
    if (result != 0) fail("a call of the CUDA driver's");
  }
  [[noreturn]] static void fail(const char* what) {
    std::fprintf(stderr, "gpu_benchmark: %s failed\n", what);
    std::exit(1);
  }

  static void* open() {
    const char* const named = std::getenv("UCXIO_CUDA_DRIVER");
    return ::dlopen(named != nullptr ? named : "libcuda.so.1", RTLD_NOW);
  }

  void* const library_ = open();
  void* stream_ = nullptr;
  int (&start_)(std::uint64_t, std::uint64_t, std::size_t, void*) =
      find<int(std::uint64_t, std::uint64_t, std::size_t, void*)>("cuMemcpyAsync");
  int (&wait_)(void*) = find<int(void*)>("cuStreamSynchronize");
};

}  // namespace ucx::benchmarks
