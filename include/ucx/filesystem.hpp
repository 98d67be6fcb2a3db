#pragma once

#include <chrono>
#include <cstdint>
#include <system_error>
#include <vector>

#include "ucx/entry.hpp"
#include "ucx/error.hpp"
#include "ucx/export.hpp"
#include "ucx/url.hpp"

/// The functions of `std::filesystem`, for URLs. Each asks the server one question, over the client
/// that all streams by URL share (`client::shared`). They take a `ucx::url` and no type that
/// converts to one, so that `remove("file")` never means one of these. A change is not repeated. If
/// the server ends meanwhile, the change fails with connection_reset, and may have been made.
/// Errors: no_such_name, bad_name (the URL has none), and those of the connection; for a change
/// also permission_denied (the store is not writable), busy (a client writes it), not_supported (a
/// name that was published by itself, or a server from before there were stores).
/// Cost: one question. Before a change there is another one, if the server was silent for a moment.
/// A connection is made, unless one exists or lingers.
namespace ucx {

/// Returns whether the name exists: a published name, or a file or directory of a store.
UCXIO_EXPORT bool exists(const url& name, std::error_code& ec = throws);

/// Returns how many bytes it has.
/// Errors: not_supported (a directory).
UCXIO_EXPORT std::uint64_t file_size(const url& name, std::error_code& ec = throws);

/// Returns the time of the last change of a file or directory of a store, as near as the clock can
/// hold it. `entry::modified` has all of it.
/// Errors: not_supported (other names: their time is not known).
UCXIO_EXPORT std::chrono::system_clock::time_point last_write_time(const url& name,
                                                                   std::error_code& ec = throws);

/// Returns the entries directly in a directory of a store, by name. A URL without a name is the
/// root of the store that has no prefix.
UCXIO_EXPORT std::vector<entry> list_directory(const url& directory, std::error_code& ec = throws);

/// Removes a file, or an empty directory, and returns whether there was one.
/// Errors: already_exists (a directory that is not empty).
UCXIO_EXPORT bool remove(const url& name, std::error_code& ec = throws);

/// Renames within one store. An entry that has the new name is replaced.
/// Errors: not_supported (another server, or store).
UCXIO_EXPORT void rename(const url& from, const url& to, std::error_code& ec = throws);

/// Makes a file `size` bytes long. Added bytes are zero.
/// Errors: no_space.
UCXIO_EXPORT void resize_file(const url& name, std::uint64_t size, std::error_code& ec = throws);

}  // namespace ucx
