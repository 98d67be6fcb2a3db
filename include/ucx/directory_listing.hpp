#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <system_error>
#include <vector>

#include "ucx/client.hpp"
#include "ucx/entry.hpp"
#include "ucx/error.hpp"
#include "ucx/export.hpp"
#include "ucx/io_options.hpp"

namespace ucx {

/// The files and directories directly in a directory of a store.
struct directory_listing {
  std::vector<entry> entries = {};  ///< Files, and directories, by name.
  /// The number of further names that are not served. They are symbolic links, special files, and
  /// names that are not UTF-8 or too long. 0 where the server is from before it told.
  std::uint64_t unserved = 0;
};

/// Returns the entries of `client::list_directory`, and the number of names that it leaves out.
/// Errors: those of `client::list_directory`.
/// Cost: that of `client::list_directory`.
UCXIO_EXPORT directory_listing read_directory(client& from, std::string_view directory,
                                              const io_options& options = {},
                                              std::error_code& ec = throws);

/// Gets names as they come, some hundred at a time, in order. Returns whether to go on.
using entry_visitor = std::function<bool(std::vector<entry>&&)>;

/// Lists like `client::list`, without holding all names in memory: `visit` gets them. An exception
/// of `visit` ends the list. The time-out bounds each question.
/// Errors: those of `client::list`, but no_memory.
UCXIO_EXPORT void visit_names(client& from, const entry_visitor& visit,
                              const io_options& options = {}, std::error_code& ec = throws);

/// Lists like `read_directory`: `visit` gets the entries. Returns the number of names that are not
/// served.
UCXIO_EXPORT std::uint64_t visit_directory(client& from, std::string_view directory,
                                           const entry_visitor& visit,
                                           const io_options& options = {},
                                           std::error_code& ec = throws);

#if UCXIO_OLD_NAMES
[[deprecated("the error code comes last")]] inline directory_listing read_directory(
    client& from, std::string_view directory, std::error_code& ec, const io_options& options = {}) {
  return read_directory(from, directory, options, ec);
}
[[deprecated("the error code comes last")]] inline void visit_names(
    client& from, const entry_visitor& visit, std::error_code& ec, const io_options& options = {}) {
  visit_names(from, visit, options, ec);
}
[[deprecated("the error code comes last")]] inline std::uint64_t visit_directory(
    client& from, std::string_view directory, const entry_visitor& visit, std::error_code& ec,
    const io_options& options = {}) {
  return visit_directory(from, directory, visit, options, ec);
}
#endif

}  // namespace ucx
