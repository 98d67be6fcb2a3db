// Requests about the files of a store by their names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>

#include "file/file_facts.hpp"
#include "store/store_listing.hpp"

namespace ucx::detail {

class store_core;

/// None of these opens a file for a client. A part of a store, under the worker's lock; answers
/// come as `store_disk` says.
class store_names {
 public:
  using done = std::function<void(std::error_code)>;
  using found = std::function<void(std::error_code, file_facts)>;
  using listed = std::function<void(std::error_code, store_listing::page)>;

  explicit store_names(store_core& store) noexcept : store_(store) {}
  store_names(const store_names&) = delete;
  store_names& operator=(const store_names&) = delete;

  /// A longer path makes no name together with the prefix.
  std::size_t longest_path() const noexcept;
  bool is_path(std::string_view path) const noexcept;

  void stat(const std::string& path, found answer);
  void list_files(const std::string& after, std::size_t most, listed answer);
  void list_directory(const std::string& directory, const std::string& after, std::size_t most,
                      listed answer);
  // Errors: permission_denied (the store is not writable), bad_name, busy (somebody writes it).
  void remove(const std::string& path, done answer);
  void make_directory(const std::string& path, done answer);
  /// `files_only`: a directory is not renamed (permission_denied).
  void rename(const std::string& from, const std::string& to, bool exclusive, bool files_only,
              done answer);
  void resize(const std::string& path, std::uint64_t size, done answer);

 private:
  store_core& store_;
};

}  // namespace ucx::detail
