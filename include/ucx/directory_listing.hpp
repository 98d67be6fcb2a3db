#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <system_error>
#include <vector>

#include "ucx/client.hpp"
#include "ucx/entry.hpp"
#include "ucx/export.hpp"
#include "ucx/io_options.hpp"

namespace ucx {

/// What lies directly in a directory of a store.
struct directory_listing {
  std::vector<entry> entries = {};  ///< Files, and directories, by name.
  /// How many names more there are whose files nobody can have: symbolic links, special files,
  /// names that are not UTF-8, and such as are too long. 0 where the server is from before it told.
  std::uint64_t unserved = 0;
};

/// Returns what `client::list_directory` does, and how much of the directory that leaves out.
/// Errors, cost: its.
UCXIO_EXPORT directory_listing read_directory(client& from, std::string_view directory,
                                              const io_options& options = {});
UCXIO_EXPORT directory_listing read_directory(client& from, std::string_view directory,
                                              std::error_code& ec, const io_options& options = {});

/// Is given names as they come, some hundred at a time, in order; returns whether to go on.
using entry_visitor = std::function<bool(std::vector<entry>&&)>;

/// Does what `client::list` does, without having all names in memory: `visit` gets them. What it
/// throws ends the list. The time-out is for each question. Errors: its, but no_memory.
UCXIO_EXPORT void visit_names(client& from, const entry_visitor& visit,
                              const io_options& options = {});
UCXIO_EXPORT void visit_names(client& from, const entry_visitor& visit, std::error_code& ec,
                              const io_options& options = {});

/// The same of what `read_directory` reads; returns how many names there are beside that.
UCXIO_EXPORT std::uint64_t visit_directory(client& from, std::string_view directory,
                                           const entry_visitor& visit,
                                           const io_options& options = {});
UCXIO_EXPORT std::uint64_t visit_directory(client& from, std::string_view directory,
                                           const entry_visitor& visit, std::error_code& ec,
                                           const io_options& options = {});

}  // namespace ucx
