#pragma once

#include <chrono>
#include <cstdint>
#include <system_error>
#include <vector>

#include "ucx/entry.hpp"
#include "ucx/export.hpp"
#include "ucx/url.hpp"

/// What `std::filesystem` does with paths, for URLs: one question to the server each, through the
/// client that all streams by URL share (`client::shared`). They take a `ucx::url` and nothing that
/// becomes one by itself, so that `remove("file")` never means one of these.
/// Cost: a question; before a change another one, where nothing was heard of the server for a
/// moment; and a connection, unless one is there or lingers. Changes are not repeated: that of a
/// server that ends meanwhile fails with connection_reset, and may have been made.
/// Errors: no_such_name, bad_name (the URL has none), and those of the connection; of a change also
/// permission_denied (the store is not writable), busy (somebody writes it), not_supported (what
/// was published by itself, or a server from before there were stores).
namespace ucx {

/// Returns whether there is something of that name: published, a file, or a directory of a store.
UCXIO_EXPORT bool exists(const url& name);
UCXIO_EXPORT bool exists(const url& name, std::error_code& ec);

/// Returns how many bytes it has. Errors: not_supported (a directory).
UCXIO_EXPORT std::uint64_t file_size(const url& name);
UCXIO_EXPORT std::uint64_t file_size(const url& name, std::error_code& ec);

/// Returns when a file or directory of a store was changed last, as near as the clock can say it
/// (`entry::modified` has all of it). Errors: not_supported (anything else: nobody knows).
UCXIO_EXPORT std::chrono::system_clock::time_point last_write_time(const url& name);
UCXIO_EXPORT std::chrono::system_clock::time_point last_write_time(const url& name,
                                                                   std::error_code& ec);

/// Returns what lies directly in a directory of a store, by name; of a URL without a name, in the
/// root of the store that has no prefix.
UCXIO_EXPORT std::vector<entry> list_directory(const url& directory);
UCXIO_EXPORT std::vector<entry> list_directory(const url& directory, std::error_code& ec);

/// Removes a file, or an empty directory, and returns whether there was one.
/// Errors: already_exists (a directory that is not empty).
UCXIO_EXPORT bool remove(const url& name);
UCXIO_EXPORT bool remove(const url& name, std::error_code& ec);

/// Renames within one store; what has the new name is replaced. Errors: not_supported (another
/// server, or store).
UCXIO_EXPORT void rename(const url& from, const url& to);
UCXIO_EXPORT void rename(const url& from, const url& to, std::error_code& ec);

/// Makes a file `size` bytes long; what is added is zero. Errors: no_space.
UCXIO_EXPORT void resize_file(const url& name, std::uint64_t size);
UCXIO_EXPORT void resize_file(const url& name, std::uint64_t size, std::error_code& ec);

}  // namespace ucx
