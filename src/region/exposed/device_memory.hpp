// Memory that the CUDA driver copies: a device's, or managed. Nothing here touches it otherwise.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <system_error>

#include "base/result.hpp"
#include "cuda/device_copier.hpp"
#include "file/file_source.hpp"
#include "ucx/memory_place.hpp"

namespace ucx::detail {

/// The services that answer peers read it like a file: bytes at offsets, which arrive later. It has
/// a separate copier, so its copies do not wait for the program's work on the device.
class device_memory final : public file_source, public std::enable_shared_from_this<device_memory> {
 public:
  /// Uses the caller's memory, until withdraw() returns. Errors: invalid_argument (not all of it is
  /// at `place`, or of one allocation), not_supported, no_memory, io_error. Accesses fail with
  /// io_error once that allocation is gone, even where another has its address.
  static result<std::shared_ptr<device_memory>> borrow(const memory_place& place,
                                                       std::span<std::byte> bytes);
  /// Allocates `size` zeroed bytes, which go with the object, or when it is withdrawn. Errors: the
  /// same; busy (no thread to be had), timed_out (the device has not set them to zero within
  /// `longest_copy`; they are given back when the driver lets go of them).
  static result<std::shared_ptr<device_memory>> allocate(const memory_place& place,
                                                         std::size_t size);
  ~device_memory() override;

  /// Returns where it is: what the caller knows it by.
  std::span<std::byte> where() const noexcept { return bytes_; }
  const memory_place& place() const noexcept { return place_; }
  /// Returns whether it was allocated here.
  bool is_owned() const noexcept { return owned_; }
  const cuda_context& context() const noexcept { return *copier_->context(); }

  /// Has `wanted` copied, which keeps this object; `host` and the direction are set, `device` is at
  /// `offset`. Errors: revoked (it was withdrawn; which may be the copy's, too), no_memory, busy.
  std::error_code start(std::shared_ptr<device_copy> wanted, std::uint64_t offset) noexcept;

  /// Nothing comes without the driver.
  std::size_t read_now(std::uint64_t, std::span<std::byte>) noexcept override { return 0; }
  /// Returns when the bytes are there, or after `longest_copy`. Errors: io_error (the driver's;
  /// memory that was freed), no_memory, revoked, timed_out.
  std::error_code read(std::uint64_t offset, std::span<std::byte> into) noexcept override;
  /// Returns when the bytes are in the memory, or after `longest_copy`. Errors: those of `read`.
  std::error_code write(std::uint64_t offset, std::span<const std::byte> from) noexcept;

  /// Allows no further copy. Returns when no copy runs and owned memory is freed, or after
  /// `longest_copy`: a device that hangs must not hang its owner. In that case the memory is freed
  /// when the driver lets go of it.
  void withdraw() noexcept;
  static constexpr std::chrono::seconds longest_copy{5};

 private:
  device_memory(const memory_place& place, std::shared_ptr<device_copier> copier) noexcept
      : place_(place), copier_(std::move(copier)) {}
  result<void> take_memory(std::size_t size);
  result<void> clear();
  void release() noexcept;

  const memory_place place_;
  bool is_there() const noexcept;

  const std::shared_ptr<device_copier> copier_;
  std::span<std::byte> bytes_;
  // Which the caller's is of. 0: of none that is known, or withdrawn.
  std::atomic<std::uint64_t> allocation_{0};
  bool owned_ = false;
};

}  // namespace ucx::detail
