// Copies of files in the memory of a CUDA device.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "ucx/memory_resources.hpp"

namespace ucx::tool {

/// The copies go with it. Errors of everything: failure.
class device_files {
 public:
  /// Uses the device that the CUDA driver gives the number `device`.
  explicit device_files(int device);
  device_files(const device_files&) = delete;
  device_files& operator=(const device_files&) = delete;
  ~device_files();

  /// Copies what is in the file now; returns where it is, empty for an empty file.
  std::span<std::byte> add(const std::filesystem::path& path);

 private:
  std::unique_ptr<memory_pool> pool_;
  std::vector<std::span<std::byte>> copies_;
};

}  // namespace ucx::tool
