// The files of a store that clients have open.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <system_error>

#include "base/clock.hpp"
#include "file/file_facts.hpp"
#include "store/store_region.hpp"
#include "ucx/access.hpp"

namespace ucx::detail {

class store_core;
class store_host;
struct opened_file;
class worker_core;

/// A part of a store, under the worker's lock, but for what ends it. Answers come as `store_disk`
/// says.
class store_files {
 public:
  using opened = std::function<void(std::error_code, std::shared_ptr<store_region>, file_facts)>;

  explicit store_files(store_core& store) noexcept : store_(store) {}
  store_files(const store_files&) = delete;
  store_files& operator=(const store_files&) = delete;

  /// Opens a file as it is. Errors: as store_directory's; too_many_store_files, too_many_writers;
  /// permission_denied (to write a store that is not writable); busy (it is being written already,
  /// or too much is asked).
  void open(const std::string& path, access wanted, opened answer);
  /// Begins a file that gets its name when it is committed.
  void create(const std::string& path, access wanted, bool exclusive, opened answer);
  /// Opens a file to be written where it is, and makes it where there is none.
  void append(const std::string& path, access wanted, opened answer);
  /// Takes a region out of the client's hands; a file without a name is thrown away.
  void let_go(store_region& region) noexcept;

  // For the end of the store, without the lock.
  /// Tells the clients, and has what they have open end by `until`.
  void withdraw(store_host& server, clock::time_point until) noexcept;
  /// Throws away what has no name yet.
  void discard_unnamed(worker_core& home) noexcept;

 private:
  template <class Work>
  void open_by(store_place place, access wanted, Work work, opened answer);
  void let_in(const store_place& place, access wanted, opened_file file, const opened& answer);
  bool forget_behind_writes(const store_place& place) noexcept;
  void discard(const std::string& spooled) noexcept;
  std::shared_ptr<store_region> next_open(std::uint64_t behind) const noexcept;
  template <class Act>
  void each_open(worker_core& home, Act act) const;

  store_core& store_;
  std::map<std::uint64_t, std::weak_ptr<store_region>> regions_;  // by number
};

}  // namespace ucx::detail
