// A directory of the system, whose files are reached by relative paths that can not leave it.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "base/owned_descriptor.hpp"
#include "base/result.hpp"
#include "file/file_facts.hpp"
#include "store/directory_place.hpp"
#include "store/store_listing.hpp"

namespace ucx::detail {

struct opened_file {
  owned_descriptor descriptor = {};
  file_facts facts = {};
};

/// An empty file that has no name yet but in the spool.
struct spooled_file {
  std::string name = {};
  owned_descriptor descriptor = {};
};

/// A file whose name is another file's now.
struct replaced_file {
  file_facts facts = {};
  /// Where freeing its bytes takes long: they are freed when this is closed.
  owned_descriptor kept = {};
};

/// The directory that a file has just been moved to: files often come many to one.
struct last_parent {
  std::string path = {};
  owned_descriptor opened = {};
};

/// Every call may take as long as a disk does. Paths are such that nothing complains about
/// (`complaint_about_path`). No symbolic link is followed, also none that is made meanwhile;
/// nothing but a regular file is ever opened. Safe from any thread.
class store_directory {
 public:
  /// How paths are looked up: by the kernel at once, or component by component. The latter is for
  /// kernels older than 5.6, or that do not let us.
  enum class lookup { automatic, by_component };

  /// Errors: no_such_name, permission_denied, not_supported (not a directory); with `writable`
  /// busy (another process, or server, writes this store).
  static result<std::shared_ptr<store_directory>> open(const std::filesystem::path& path,
                                                       bool writable,
                                                       lookup how = lookup::automatic);
  store_directory(const store_directory&) = delete;
  store_directory& operator=(const store_directory&) = delete;

  /// Opens a regular file. Errors: no_such_name (a symbolic link on the way, too), not_supported
  /// (a directory, or something else), permission_denied, too_many_files, io_error, stale_store.
  result<opened_file> open_file(const std::string& path, bool writable) const;
  /// As open_file for reading, where the kernel knows the file already and the file system is one
  /// of this machine's disks: then nothing waits. Nothing where that is not so, or on any error.
  std::optional<opened_file> open_now(const std::string& path) const;
  std::optional<file_facts> stat_now(const std::string& path) const;
  /// Describes a regular file or a directory; the empty path is the root. Errors: as open_file.
  result<file_facts> stat(const std::string& path) const;

  /// Lists what is in it.
  const store_listing& listing() const noexcept { return listing_; }

  // Of a writable store.
  result<spooled_file> create_unnamed() const;
  /// Returns why what has this name is not replaced: already_exists (`exclusive`), bad_name (a
  /// symbolic link), not_supported (what is no file). Nothing where nothing has it.
  std::error_code check_replaced(const std::string& path, bool exclusive) const noexcept;
  /// Gives a file of the spool its name, with the directories that are missing, and returns what
  /// had it. Errors: as check_replaced; no_space, permission_denied, no_such_name (a directory of
  /// the path is none). `last` is where the file before it went, if that was just now, and tells
  /// where this one went.
  result<replaced_file> give_name(const std::string& spooled, const std::string& path,
                                  bool exclusive, last_parent* last = nullptr) const;
  /// Returns when the name, and those of the directories above it, are on the device. Errors:
  /// io_error.
  std::error_code sync_name(std::string_view path) const;
  void discard(const std::string& spooled) const noexcept;
  /// Returns whether room reserved ahead of new files makes writing them faster.
  bool room_ahead_helps() const noexcept { return room_ahead_helps_; }
  /// Opens a file for writing that is made, empty, where there is none.
  result<opened_file> open_or_create(const std::string& path) const;
  /// Removes a file, or an empty directory, and tells what it was. Errors: no_such_name,
  /// already_exists (a directory that is not empty), permission_denied.
  result<file_facts> remove(const std::string& path) const;
  /// Makes an empty directory, and those above it that are missing. Errors: already_exists,
  /// no_space, permission_denied, no_such_name (a directory of the path is none), stale_store.
  result<file_facts> make_directory(const std::string& path) const;
  /// Tells what was replaced. Errors: as give_name, and no_such_name; permission_denied (a
  /// directory, where it may be a file only).
  result<file_facts> rename(const std::string& from, const std::string& to, bool exclusive,
                            bool files_only = false) const;

  // For its parts.
  /// Opens what is there, as open(2) has the `flags`; nothing, with errno, where it can not.
  owned_descriptor open_beneath(const std::string& path, int flags) const noexcept;
  /// Returns whether no path leads to it any more.
  bool is_gone() const noexcept { return place_.is_gone(root_.get()); }

 private:
  store_directory(owned_descriptor root, bool kernel_looks_up) noexcept
      : root_(std::move(root)), kernel_looks_up_(kernel_looks_up) {}
  result<void> open_spool(const std::string& doing);
  std::error_code lookup_error(int number) const noexcept;
  owned_descriptor open_parent(std::string_view path) const;
  owned_descriptor make_parent(std::string_view path) const;
  result<replaced_file> move_in(const std::string& spooled, int parent, const std::string& path,
                                bool exclusive) const;

  owned_descriptor root_;
  directory_place place_;
  owned_descriptor spool_;
  bool answers_now_ = false;       // what is known is told without waiting
  bool room_ahead_helps_ = false;  // and what is replaced takes long to free
  const bool kernel_looks_up_;
  const store_listing listing_{*this};
};

/// Returns what a failed call of the system on a file of a store means.
std::error_code store_error(int number) noexcept;

/// Returns whether the system, or the file system, denies this process `how` (as access(2) has it)
/// in an open directory; sets errno then. Returns false where it can not be asked, as where a
/// filter of system calls denies that (EPERM).
bool is_refused(int directory, int how) noexcept;

/// Returns what the system says of an open file.
result<file_facts> facts_of(int descriptor) noexcept;

}  // namespace ucx::detail
