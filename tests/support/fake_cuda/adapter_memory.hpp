// The memory of the pretended devices, for the simulated UCX and its adapters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "support/fake_cuda/fake_cuda.hpp"
#include "support/fake_ucp/fake_devices.hpp"

namespace ucx::test {

class adapter_memory final : public fake_devices {
 public:
  bool has(const void* address) const override { return fake_cuda_has(number(address)) != 0; }
  bool is_in_reach(const void* address, std::size_t size) const override {
    return fake_cuda_adapter_reaches(number(address), size) != 0;
  }
  bool emulates_gets() const override { return gets_are_emulated; }
  bool read(const void* from, std::span<std::byte> into, bool by_adapter) override {
    return (by_adapter ? fake_cuda_adapter_read(into.data(), number(from), into.size())
                       : fake_cuda_read_aside(into.data(), number(from), into.size())) == 0;
  }
  bool write(void* into, std::span<const std::byte> from, bool by_adapter) override {
    return (by_adapter ? fake_cuda_adapter_write(number(into), from.data(), from.size())
                       : fake_cuda_write_aside(number(into), from.data(), from.size())) == 0;
  }

  bool gets_are_emulated = false;

 private:
  static std::uint64_t number(const void* address) {
    return reinterpret_cast<std::uintptr_t>(address);
  }
};

}  // namespace ucx::test
