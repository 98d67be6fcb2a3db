// What a server has to serve in the directory of a store.
#pragma once

#include <filesystem>
#include <stop_token>

#include "ucx/url.hpp"

namespace ucx::tool {

/// Returns whether nothing below `directory` is served: no regular file, with a name that can be
/// told behind that of the store, whose URL is `store`. Looks until it finds one; false also where
/// a directory can not be read, and when `stop` is requested: then nobody knows.
bool serves_nothing(const std::filesystem::path& directory, const url& store,
                    const std::stop_token& stop);

}  // namespace ucx::tool
