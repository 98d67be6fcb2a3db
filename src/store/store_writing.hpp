// Writes to the files that clients have open, on their way to the disk.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <system_error>

#include "base/disk_thread.hpp"
#include "file/file_facts.hpp"

namespace ucx::detail {

class store_core;
class store_region;

/// One thing after the other: writes, commits and new sizes wait in one queue. A part of a store,
/// under the worker's lock; answers come as `store_disk` says.
class store_writing {
 public:
  using committed = std::function<void(std::error_code, file_facts)>;
  using done = std::function<void(std::error_code)>;

  explicit store_writing(store_core& store) noexcept : store_(store) {}
  store_writing(const store_writing&) = delete;
  store_writing& operator=(const store_writing&) = delete;

  /// Has the disk write; returns whether it will.
  bool write_later(disk_queue::work job);
  /// Gives a file its name, if it has none, and has it on the device where that is wanted. Errors:
  /// as commit_job's; no_such_name (a commit has thrown it away), permission_denied (it is not open
  /// for writing), busy (it is being committed).
  void commit(const std::shared_ptr<store_region>& region, bool durable, committed answer);
  /// Makes a file longer or shorter, for its writer. Errors: as commit; no_space; busy (a write is
  /// on its way).
  void resize(const std::shared_ptr<store_region>& region, std::uint64_t size, done answer);

 private:
  store_core& store_;
};

}  // namespace ucx::detail
