#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "ucx/access.hpp"
#include "ucx/client.hpp"
#include "ucx/remote_file.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"
#include "ucx/version.hpp"

namespace ucx {

/// The outcome for one of many names.
struct open_result {
  std::optional<remote_region> region = {};  ///< Empty with an error.
  std::error_code error = {};
};

/// Opens many names like `client::open`, and waits for the answers together. For many small files,
/// a round trip each would take most of the time. Returns as many outcomes as there are names, in
/// order. The time-out bounds each 64 names. After one that timed out, no more names are asked for,
/// and the rest gets timed_out, too.
/// Errors: in each outcome, those of `client::open`; too_many_client_files where a store lets a
/// client have fewer files open (`store_options`); would_deadlock inside a completion callback. An
/// empty `from` throws `closed`.
/// Cost: a round trip for each 64 names.
UCXIO_EXPORT std::vector<open_result> open_many(client& from, std::span<const std::string> names,
                                                access wanted = access::read,
                                                const io_options& options = {});

/// The outcome for one of many short files.
struct read_result {
  std::vector<std::byte> bytes = {};  ///< The whole file; empty with an error.
  std::error_code error = {};
};

/// Returns the contents of many short files, of `max_size` bytes at most each, and waits for the
/// answers together. A server sends a file with its answer, without opening it, if the system has
/// it in memory. Every other file is opened and read. A file that changes meanwhile is read as by
/// `remote_region::read_at`. Returns as many outcomes as there are names, in order. The time-out is
/// that of `open_many`.
/// Errors: in each outcome, those of `open_many` and `remote_region::read_at`; message_truncated
/// (the file is longer). An empty `from` throws `closed`.
/// Cost: a round trip for each 64 names, and one more for each further 64 KiB in a dozen of them.
/// Two round trips for each dozen of files that have to be opened.
UCXIO_EXPORT std::vector<read_result> read_many(client& from, std::span<const std::string> names,
                                                std::size_t max_size,
                                                const io_options& options = {});

/// A short file to be written.
struct short_file {
  std::string name = {};
  std::span<const std::byte> bytes = {};  ///< The whole content of the file.
};

/// Writes many short files of stores, each whole or not at all, and waits for the answers together.
/// The bytes go with the questions, and no file is opened. A file that is too long for that is
/// created, written and committed like any other. So is every file if the server's library is too
/// old. `how` is `replace` or `exclusive`. Returns as many outcomes as there are files, in order.
/// The time-out bounds each 2 MiB or 256 files. After a batch that timed out no more files are
/// sent, and the rest has the same error.
/// Completes: when each file has its name, or will not get it by this call. After timed_out,
/// revoked, io_error, no_memory or a lost connection, which of these is not known.
/// Lifetime: the bytes, until this returns.
/// Errors: in each outcome, those of `client::create`, `remote_region::flush` and `client::commit`;
/// busy also where the server had no room in time, and where two files have one name, unless each
/// simply replaces the other. Thrown: `closed` where `to` is empty, invalid_argument (another
/// `how`).
/// Cost: a round trip for each 2 MiB; a copy of the bytes at either end.
UCXIO_EXPORT std::vector<std::error_code> write_many(client& to, std::span<const short_file> files,
                                                     creation how = creation::replace,
                                                     const io_options& options = {});

}  // namespace ucx
