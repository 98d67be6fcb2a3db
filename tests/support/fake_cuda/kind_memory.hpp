// A program's memory of any kind, which only the driver looks into.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/bytes/pattern.hpp"
#include "support/fake_cuda/cuda_program.hpp"
#include "ucx/memory_place.hpp"

namespace ucx::test {

inline constexpr memory_kind every_kind[] = {memory_kind::host, memory_kind::cuda,
                                             memory_kind::cuda_managed, memory_kind::cuda_pinned};

/// Returns whether the processor must not touch memory of this kind.
constexpr bool is_of_driver(memory_kind kind) noexcept {
  return kind == memory_kind::cuda || kind == memory_kind::cuda_managed;
}

/// Names the instances of a test with a kind.
inline std::string name_of_kind(const testing::TestParamInfo<memory_kind>& instance) {
  return std::string(to_string(instance.param));
}

/// What a test reads into and writes from. REQUIRES: a `cuda_program`, which outlives it.
class kind_memory {
 public:
  kind_memory(memory_kind kind, std::size_t size) : kind_(kind) {
    if (kind == memory_kind::host) {
      host_.resize(size);
      bytes_ = host_;
    } else if (kind == memory_kind::cuda) {
      bytes_ = cuda_program::allocate(size);
    } else if (kind == memory_kind::cuda_managed) {
      bytes_ = cuda_program::allocate_managed(size);
    } else {
      bytes_ = cuda_program::allocate_pinned(size);
    }
  }
  /// Makes one that holds `pattern(size, seed)`.
  kind_memory(memory_kind kind, std::size_t size, std::uint64_t seed) : kind_memory(kind, size) {
    fill(seed);
  }
  kind_memory(const kind_memory&) = delete;
  kind_memory& operator=(const kind_memory&) = delete;
  ~kind_memory() {
    if (kind_ == memory_kind::cuda_pinned) cuMemFreeHost(bytes_.data());
    if (is_of_driver(kind_)) cuMemFree_v2(cuda_program::address(bytes_));
  }

  std::span<std::byte> bytes() noexcept { return bytes_; }
  char* characters() noexcept { return reinterpret_cast<char*>(bytes_.data()); }
  void fill(std::uint64_t seed) { put(pattern(bytes_.size(), seed)); }
  void put(std::span<const std::byte> content) { cuda_program::put(bytes_, content); }
  std::vector<std::byte> content() const { return cuda_program::content(bytes_); }
  /// Returns whether its first `size` bytes are those of a pattern.
  bool holds(std::uint64_t seed, std::size_t size) const {
    return holds_pattern(cuda_program::content(bytes_.first(size)), seed);
  }
  bool holds(std::uint64_t seed) const { return holds(seed, bytes_.size()); }

 private:
  const memory_kind kind_;
  std::vector<std::byte> host_;
  std::span<std::byte> bytes_;
};

/// How many bytes the driver has copied, since it was made, between the host and devices.
class copied_bytes {
 public:
  std::uint64_t to_device() const { return fake_cuda_bytes(fake_cuda_to_device) - to_; }
  std::uint64_t from_device() const { return fake_cuda_bytes(fake_cuda_from_device) - from_; }

 private:
  const std::uint64_t to_ = fake_cuda_bytes(fake_cuda_to_device);
  const std::uint64_t from_ = fake_cuda_bytes(fake_cuda_from_device);
};

}  // namespace ucx::test
