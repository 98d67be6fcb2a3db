#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <system_error>

#include "ucx/export.hpp"
#include "ucx/stream_options.hpp"

/// `std::FILE*` for URLs, for code that reads and writes nothing else: what `std::fopen` gives, and
/// every function of the C library takes. `docs/reference/adapters.md` is the contract.
namespace ucx {

class client;

/// Opens a URL, or a local path by `std::fopen`, as `mode` says: "r", "r+", "w", "w+", "a", "a+",
/// with "b" and "x" as in C. `std::fclose` ends it, and says with EOF and errno that not everything
/// that was written is known to be visible, or that a new file did not get its name. Those that are
/// open when the program ends by `exit` are flushed and closed.
/// What the C library hands over (`std::fflush`, a full buffer, a seek) is visible at the peer when
/// that returns. Nothing is thrown from within its functions: they fail as over a file, with errno.
/// Threads: as every FILE, any; it has a lock. In a child of `fork()` it fails with ENOTSUP.
/// Returns null, with errno, where that fails; the forms with `ec` say there what filebuf::open
/// does.
UCXIO_EXPORT std::FILE* open_file(const std::string& name, const char* mode,
                                  const stream_options& options = {});
UCXIO_EXPORT std::FILE* open_file(const std::string& name, const char* mode, std::error_code& ec,
                                  const stream_options& options = {});
/// Opens what the server of `from` publishes as `name`.
UCXIO_EXPORT std::FILE* open_file(client& from, std::string_view name, const char* mode,
                                  const stream_options& options = {});
UCXIO_EXPORT std::FILE* open_file(client& from, std::string_view name, const char* mode,
                                  std::error_code& ec, const stream_options& options = {});

/// Returns the last failure of a file that was opened so, of which errno is all that C has; none
/// where none failed, or where it is a local one.
UCXIO_EXPORT std::error_code file_error(std::FILE* opened) noexcept;
/// Returns it as a text that names the URL.
UCXIO_EXPORT std::string file_error_message(std::FILE* opened);

}  // namespace ucx
