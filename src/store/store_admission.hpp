// Limits of the files of a store: how many are open, and which have a writer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "ucx/publication.hpp"

namespace ucx::detail {

class store_core;
struct store_place;

/// Counts what clients have open, and holds it to the store's limits; it opens nothing. A part of a
/// store, under the worker's lock.
class store_admission {
 public:
  /// Returns `options` with what was left open, by what the process may have open.
  static store_options decided(store_options options) noexcept;

  /// `open_of_all` counts the files of all stores of the server; with `shares_descriptors` the
  /// limit holds for those, as it is what the process has.
  store_admission(store_core& store, std::shared_ptr<std::atomic<std::size_t>> open_of_all,
                  bool shares_descriptors) noexcept
      : store_(store),
        open_of_all_(std::move(open_of_all)),
        shares_descriptors_(shares_descriptors) {}
  store_admission(const store_admission&) = delete;
  store_admission& operator=(const store_admission&) = delete;
  ~store_admission() { *open_of_all_ -= open_; }

  /// Notes that a file is about to be opened; `forget` takes it back. Errors: no_such_name;
  /// too_many_store_files, too_many_writers; permission_denied (to write a store that is not
  /// writable); bad_name; busy (it is being written already).
  std::error_code admit(const store_place& place);
  void forget(const store_place& place) noexcept;
  /// Notes that somebody writes a file of that name, without having it open.
  void take_name(const std::string& path) { written_.insert(path); }
  void free_name(const std::string& path) noexcept { written_.erase(path); }

  /// Returns why the file of that name can not be taken away from under it.
  std::error_code check_change(const std::string& path) const;
  bool is_written_below(const std::string& path) const;
  /// Returns how much the writer that was let in last may have unconfirmed.
  std::size_t window() const noexcept;
  /// No file of the system's is longer than its offsets reach.
  std::uint64_t largest_file() const noexcept;

 private:
  store_core& store_;
  const std::shared_ptr<std::atomic<std::size_t>> open_of_all_;
  const bool shares_descriptors_;
  std::size_t open_ = 0;  // files that are open, or being opened
  std::size_t writers_ = 0;
  std::set<std::string> written_;  // paths that somebody writes
};

}  // namespace ucx::detail
