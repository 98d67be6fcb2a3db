#pragma once

#include <cstdint>
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

}  // namespace ucx
