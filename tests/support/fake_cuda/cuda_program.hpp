// A program that uses CUDA beside the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/fake_cuda/fake_cuda.hpp"

namespace ucx::test {

/// Begins with a driver as new, and uses the primary context of a device on the thread that made
/// it. Its memory goes with the driver.
class cuda_program {
 public:
  explicit cuda_program(int devices = 2, std::uint64_t seed = 1, int device = 0) {
    fake_cuda_reset(devices, seed);
    use(device);
  }
  cuda_program(const cuda_program&) = delete;
  cuda_program& operator=(const cuda_program&) = delete;
  ~cuda_program() { fake_cuda_reset(0, 0); }

  /// Makes the primary context of `device` current.
  static void use(int device) {
    CUctx_st* context = nullptr;
    expect(cuInit(0));
    expect(cuDevicePrimaryCtxRetain(&context, device));
    expect(cuCtxPushCurrent_v2(context));
  }

  static std::span<std::byte> allocate(std::size_t size) {
    std::uint64_t made = 0;
    expect(cuMemAlloc_v2(&made, size));
    return at(made, size);
  }
  static std::span<std::byte> allocate_managed(std::size_t size) {
    std::uint64_t made = 0;
    expect(cuMemAllocManaged(&made, size, 1));
    return at(made, size);
  }
  static std::span<std::byte> allocate_pinned(std::size_t size) {
    void* made = nullptr;
    expect(cuMemHostAlloc(&made, size, 0));
    return {static_cast<std::byte*>(made), size};
  }
  static std::uint64_t address(std::span<const std::byte> memory) {
    return reinterpret_cast<std::uintptr_t>(memory.data());
  }
  static void free(std::span<std::byte> memory) { expect(cuMemFree_v2(address(memory))); }

  static void put(std::span<std::byte> memory, std::span<const std::byte> bytes) {
    expect(cuMemcpy(address(memory), address(bytes), bytes.size()));
  }
  static std::vector<std::byte> content(std::span<const std::byte> memory) {
    std::vector<std::byte> bytes(memory.size());
    expect(cuMemcpy(address(bytes), address(memory), memory.size()));
    return bytes;
  }
  /// Allocates memory of a device that holds `pattern(size, seed)`.
  static std::span<std::byte> allocate_pattern(std::size_t size, std::uint64_t seed = 0) {
    const std::span<std::byte> made = allocate(size);
    put(made, pattern(size, seed));
    return made;
  }

 private:
  static std::span<std::byte> at(std::uint64_t address, std::size_t size) {
    return {reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address)), size};
  }
  /// The program's own calls succeed, or no test makes sense.
  static void expect(int result) {
    if (result != 0) std::abort();
  }
};

}  // namespace ucx::test
