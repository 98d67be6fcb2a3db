#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <system_error>

#include "ucx/error.hpp"
#include "ucx/stream_options.hpp"
#include "ucx/version.hpp"

/// `std::FILE*` for URLs, for code that reads and writes nothing else. Every function of the C
/// library takes it. `docs/reference/adapters.md` is the contract.
namespace ucx {

class client;

/// Opens a URL, or a local path by `std::fopen`. `mode` is "r", "r+", "w", "w+", "a" or "a+", with
/// "b" and "x" as in C. `std::fclose` ends it. It returns EOF, with errno, if some written bytes
/// are not known to be visible, or if a new file got no name. Files that are still open when the
/// program ends by `exit` are flushed and closed.
/// Completes: bytes that the C library hands over (by `std::fflush`, a full buffer, a seek) are
/// visible at the peer when that call returns. Its functions throw nothing: they fail as over a
/// file, with errno.
/// Threads: any, as for every FILE. In a child of `fork()` an inherited one fails with ENOTSUP.
/// Errors: returns null, with errno, and throws nothing, as `std::fopen`. The overloads with `ec`
/// also give the error of `filebuf::open`.
UCXIO_EXPORT std::FILE* open_file(const std::string& name, const char* mode,
                                  const stream_options& options = {});
UCXIO_EXPORT std::FILE* open_file(const std::string& name, const char* mode,
                                  const stream_options& options, std::error_code& ec);
/// Opens the name `name` that the server of `from` publishes.
UCXIO_EXPORT std::FILE* open_file(client& from, std::string_view name, const char* mode,
                                  const stream_options& options = {});
UCXIO_EXPORT std::FILE* open_file(client& from, std::string_view name, const char* mode,
                                  const stream_options& options, std::error_code& ec);

/// Returns the last failure of a file that `open_file` opened; C has only its errno. Returns no
/// error without a failure, and for a local file.
UCXIO_EXPORT std::error_code file_error(std::FILE* opened) noexcept;
/// Returns that failure as a text that names the URL.
UCXIO_EXPORT std::string file_error_message(std::FILE* opened);

#if UCXIO_OLD_NAMES
[[deprecated("the error code comes last")]] inline std::FILE* open_file(
    const std::string& name, const char* mode, std::error_code& ec,
    const stream_options& options = {}) {
  return open_file(name, mode, options, ec);
}
[[deprecated("the error code comes last")]] inline std::FILE* open_file(
    client& from, std::string_view name, const char* mode, std::error_code& ec,
    const stream_options& options = {}) {
  return open_file(from, name, mode, options, ec);
}
#endif

}  // namespace ucx
