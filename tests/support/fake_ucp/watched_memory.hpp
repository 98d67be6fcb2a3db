// How much of a test's memory is sent from where it lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ucx::test {

/// Memory of a simulated process, and how many bytes of it active messages were sent from since.
struct watched_memory {
  std::span<const std::byte> bytes = {};
  std::uint64_t sent_in_place = 0;

  void sent(const void* from, std::size_t size) noexcept {
    const auto* const begin = static_cast<const std::byte*>(from);
    const bool is_within =
        !bytes.empty() && begin >= bytes.data() && begin + size <= bytes.data() + bytes.size();
    if (is_within) sent_in_place += size;
  }
};

/// Of the test that runs.
inline watched_memory watched;

}  // namespace ucx::test
