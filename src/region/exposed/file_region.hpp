// A file that peers may read. They get the bytes that the file has when they ask, within the size
// that it had when it was last looked at.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "base/result.hpp"
#include "file/file_source.hpp"
#include "file/held_file.hpp"
#include "region/exposed/exposed_region.hpp"

namespace ucx::detail {

/// UCX knows nothing of it, so its descriptor has no key, and messages are the only way to it.
class file_region final : public exposed_region {
 public:
  /// Opens the file and exposes it for reading.
  /// Errors: as open_file::open; feature_disabled (the context was made without feature::am).
  static result<std::shared_ptr<file_region>> make(std::shared_ptr<context_core> context,
                                                   const std::filesystem::path& path);
  /// Exposes the first `size` bytes of `file`. Errors: feature_disabled.
  static result<std::shared_ptr<file_region>> make(std::shared_ptr<context_core> context,
                                                   std::shared_ptr<file_source> file,
                                                   std::uint64_t size);
  ~file_region() override;

  std::uint64_t size() const noexcept override { return size_.load(std::memory_order_relaxed); }
  void reach(std::uint64_t size) noexcept override;
  memory_kind kind() const noexcept override { return memory_kind::host; }
  std::span<std::byte> bytes() const noexcept override { return {}; }
  std::shared_ptr<file_source> source() const noexcept override { return file_.get(); }
  remote_descriptor descriptor() const override { return describe(); }

 private:
  /// Peers whose answers are under way get `revoked`; nothing waits for the disk: a read that hangs
  /// has the file open until it ends.
  void release() noexcept override;
  file_region(std::shared_ptr<context_core> context, std::shared_ptr<file_source> file,
              std::uint64_t size);

  held_file<file_source> file_;
  std::atomic<std::uint64_t> size_;
};

}  // namespace ucx::detail
