// Looks whether a store's directory has files to serve.
#pragma once

#include <filesystem>
#include <stop_token>

#include "ucx/url.hpp"

namespace ucx::tool {

/// Returns whether nothing below `directory` is served. A regular file is served whose name can be
/// told behind that of the store, whose URL is `store`. Looks until it finds one. Returns false
/// also where a directory can not be read, and when `stop` is requested: then it is not known.
bool serves_nothing(const std::filesystem::path& directory, const url& store,
                    const std::stop_token& stop);

}  // namespace ucx::tool
