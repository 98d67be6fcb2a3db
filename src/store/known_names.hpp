// Names of directories that were read, and that later pages of a list return.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ucx::detail {

/// A directory's name is ordered as the paths below it are: with its slash.
struct ordered_name {
  std::string key;
  bool is_directory = false;
};

/// A run of the names of a directory, in order.
struct run_of_names {
  std::vector<ordered_name> names;
  bool more = false;  ///< There are others behind the last one.
};

/// A client that lists a large directory page by page has it read once for some ten thousand names,
/// not once for each page. Names are never older than the beginning of the list: a list that begins
/// reads anew, and replaces what is known. Threads: sharing one object is safe.
class known_names {
 public:
  static constexpr std::size_t most_read = 32768;          ///< At a time.
  static constexpr std::size_t most_kept = 2 * most_read;  ///< Of all directories together.
  static constexpr std::size_t most_told = 512;            ///< At a time.

  /// Returns the next `most_told` behind `after`, the directory that holds it included; nothing
  /// where they are not known.
  std::optional<run_of_names> next(const struct ::stat& directory, std::string_view after,
                                   bool with_slashes) const;
  /// Keeps what was read, which begins behind `after`; returns the first `most_told` of it.
  run_of_names keep(const struct ::stat& directory, std::string_view after, bool with_slashes,
                    run_of_names&& read);
  /// Returns how many names are kept.
  std::size_t size() const;

 private:
  struct known {
    ::dev_t device = 0;
    ::ino_t inode = 0;
    bool with_slashes = false;
    std::string after;
    run_of_names run;

    bool is_of(const struct ::stat& directory, bool slashes) const noexcept {
      return device == directory.st_dev && inode == directory.st_ino && with_slashes == slashes;
    }
  };

  mutable std::mutex mutex_;
  std::list<known> all_;  // the latest first
};

}  // namespace ucx::detail
