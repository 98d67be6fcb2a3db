// Memory that the CUDA driver copies: a device's, or managed. Nothing here touches it otherwise.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <system_error>

#include "detail/device_copier.hpp"
#include "detail/file_source.hpp"
#include "ucx/memory_place.hpp"

namespace ucx::detail {

/// To those who serve peers it is like a file: bytes at offsets, which come when they come. Its
/// copies go by a stream of its own, so that they wait for no work of the program's on the device.
class device_memory final : public file_source {
 public:
  /// Uses the caller's memory, until withdraw() returns. Errors: invalid_argument (not all of it is
  /// at `place`), not_supported, no_memory, io_error.
  static std::shared_ptr<device_memory> borrow(const memory_place& place,
                                               std::span<std::byte> bytes, std::string& what,
                                               std::error_code& ec);
  /// Allocates `size` zeroed bytes, which go with the object. Errors: the same.
  static std::shared_ptr<device_memory> allocate(const memory_place& place, std::size_t size,
                                                 std::string& what, std::error_code& ec);
  ~device_memory() override;

  /// Returns where it is: what the caller knows it by.
  std::span<std::byte> where() const noexcept { return bytes_; }
  const memory_place& place() const noexcept { return place_; }

  /// Copies short runs at once, and nothing of longer ones.
  std::size_t read_now(std::uint64_t offset, std::span<std::byte> into) noexcept override;
  /// Errors: io_error (the driver's; memory that was freed), no_memory, revoked.
  std::error_code read(std::uint64_t offset, std::span<std::byte> into) noexcept override;
  /// Returns when the bytes are in the memory. Errors: as read().
  std::error_code write(std::uint64_t offset, std::span<const std::byte> from) noexcept;

  /// Lets nothing be copied any more; returns when no copy runs, or after `longest_copy`: a device
  /// that hangs shall not hang its owner too.
  void withdraw() noexcept;
  static constexpr std::chrono::seconds longest_copy{5};

 private:
  device_memory(const memory_place& place, std::shared_ptr<device_copier> copier) noexcept
      : place_(place), copier_(std::move(copier)) {}
  void take_memory(std::size_t size, std::string& what, std::error_code& ec);
  template <class Copy>
  std::error_code run(Copy&& copy) noexcept;
  bool begin_copy() noexcept;
  void end_copy() noexcept;

  const memory_place place_;
  const std::shared_ptr<device_copier> copier_;
  std::span<std::byte> bytes_;
  bool owned_ = false;

  std::mutex mutex_;
  std::condition_variable idle_;
  unsigned copies_ = 0;
  bool withdrawn_ = false;
};

}  // namespace ucx::detail
