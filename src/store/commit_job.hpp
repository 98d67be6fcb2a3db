// The disk's part of committing a file of a store.
#pragma once

#include <memory>
#include <string>
#include <system_error>

#include "base/disk_thread.hpp"
#include "file/file_facts.hpp"
#include "store/file_account.hpp"
#include "store/store_directory.hpp"
#include "store/store_file.hpp"

namespace ucx::detail {

/// Runs on the thread that writes, behind the file's writes.
struct commit_job {
  std::shared_ptr<store_file> file;
  std::string spooled;  ///< Empty: the file has its name already.
  std::string path;
  bool exclusive;
  bool durable;
  std::shared_ptr<store_directory> directory;
  std::shared_ptr<store_quota> quota;
  std::shared_ptr<file_account> account;
  /// The queue that it waits in. A replaced file is freed there, too: that may take as long as
  /// writing it did.
  std::shared_ptr<disk_queue> by;

  struct outcome {
    std::error_code why;  ///< It is not as it should be.
    bool ended = false;   ///< The spool has nothing of it any more.
    bool named = false;   ///< Also where it is not known to be on the device.
    file_facts facts;
  };

  /// Errors: those of the system; no_memory; revoked (the store was closed while the disk hung).
  outcome operator()() const;
  /// As operator(), but without the facts; `last` as that of store_directory::give_name.
  outcome give_name(last_parent* last = nullptr) const;

 private:
  void free_later(owned_descriptor replaced) const noexcept;
};

}  // namespace ucx::detail
