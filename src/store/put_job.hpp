// The disk's part of writing files that a client sends whole.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "base/disk_thread.hpp"
#include "store/file_account.hpp"
#include "store/store_directory.hpp"

namespace ucx::detail {

struct whole_file {
  std::string path;
  std::vector<std::byte> bytes;
  std::error_code outcome = {};  ///< Why it is not written, where that is known before.
};

/// Runs on a separate thread. Each file is there, whole, or nothing of it is.
struct put_job {
  std::vector<whole_file> files;
  bool exclusive;
  bool durable;
  std::shared_ptr<store_directory> directory;
  std::shared_ptr<store_quota> quota;
  std::shared_ptr<disk_queue> by;  ///< The queue that it waits in.

  /// Returns how it went with each. Errors of each: as commit_job's; no_space.
  std::vector<std::error_code> operator()() const;

 private:
  std::error_code write(const whole_file& file, last_parent& last) const;
};

}  // namespace ucx::detail
