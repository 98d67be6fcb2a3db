// An open file of a store.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <system_error>

#include "base/disk_thread.hpp"
#include "base/file_preallocation.hpp"
#include "base/owned_descriptor.hpp"
#include "file/file_source.hpp"

namespace ucx::detail {

/// Read and written by system calls, never mapped. `closing`, the disk's thread, closes the
/// descriptor: that may take as long as a write. Without it the thread that lets the file go waits.
/// Threads: as file_source; one at a time writes, resizes and gives room back.
class store_file final : public file_source {
 public:
  store_file(owned_descriptor opened, std::shared_ptr<disk_queue> closing,
             file_preallocation ahead = {})
      : reading_(open_file::adopt(opened.get())),
        descriptor_(std::move(opened)),
        ahead_(ahead),
        closing_(std::move(closing)) {}
  ~store_file() override;

  std::size_t read_now(std::uint64_t offset, std::span<std::byte> into) noexcept override {
    return reading_->read_now(offset, into);
  }
  std::error_code read(std::uint64_t offset, std::span<std::byte> into) noexcept override {
    return reading_->read(offset, into);
  }
  result<file_facts> facts() const noexcept override { return reading_->facts(); }
  int descriptor() const noexcept override { return descriptor_.get(); }
  /// Errors: no_space, io_error.
  std::error_code write(std::uint64_t offset, std::span<const std::byte> from) noexcept;
  /// Makes the file `size` bytes long. Errors: as write.
  std::error_code resize(std::uint64_t size) noexcept;
  /// Returns how many bytes the file has; nothing where the system does not tell.
  std::optional<std::uint64_t> size_now() const noexcept;
  /// Returns when what was written is on the device. Errors: as write.
  std::error_code sync() noexcept;
  /// Nothing is reserved ahead of it any more; before others may change it.
  void give_back_room() noexcept { ahead_.give_back(); }

 private:
  std::shared_ptr<open_file> reading_;
  owned_descriptor descriptor_;
  file_preallocation ahead_;
  std::shared_ptr<disk_queue> closing_;
};

}  // namespace ucx::detail
