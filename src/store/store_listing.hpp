// The entries of the directory of a store, in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/name.hpp"
#include "base/result.hpp"
#include "file/file_facts.hpp"
#include "store/known_names.hpp"

namespace ucx::detail {

class store_directory;

/// Keeps the names that were read for one page, for the next ones. A part of a store_directory,
/// whose rules for every call hold here.
class store_listing {
 public:
  explicit store_listing(const store_directory& directory) noexcept : directory_(directory) {}
  store_listing(const store_listing&) = delete;
  store_listing& operator=(const store_listing&) = delete;

  struct item {
    std::string path;
    file_facts facts;
  };
  struct page {
    std::vector<item> items;
    bool more = false;
    std::uint64_t unserved = 0;  ///< Names in a directory, on its first page alone.
  };
  /// Lists regular files, in order of the bytes of their paths, behind `after`; `most` at most.
  /// Paths of more than `longest` bytes are left out. Errors: io_error, too_many_files,
  /// stale_store.
  result<page> list_files(std::string_view after, std::size_t most,
                          std::size_t longest = longest_name) const;
  /// Lists files and directories that lie directly in `directory`, behind the name `after`, and
  /// counts what else does. Errors: as store_directory::stat; not_supported (not a directory),
  /// permission_denied.
  result<page> list_directory(const std::string& directory, std::string_view after,
                              std::size_t most, std::size_t longest = longest_name) const;
  /// Returns the bytes of all regular files. Errors: as list_files.
  result<std::uint64_t> total_size() const;

 private:
  const store_directory& directory_;
  mutable known_names known_;
};

}  // namespace ucx::detail
