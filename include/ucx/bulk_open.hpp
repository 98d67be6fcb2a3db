#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "ucx/access.hpp"
#include "ucx/client.hpp"
#include "ucx/create_options.hpp"
#include "ucx/export.hpp"
#include "ucx/io_options.hpp"
#include "ucx/remote_region.hpp"

namespace ucx {

/// What came of one of many names.
struct opened_name {
  std::optional<remote_region> region = {};  ///< Nothing where there is an error.
  std::error_code error = {};
};

/// Opens many names as `client::open` does, and waits for their answers together: for many small
/// files a round trip each is what takes the time. Returns as many as there are names, in order.
/// Errors: in each of them, as of `client::open`; too_many_of_client where a store lets a client
/// have fewer open (`store_options`); would_deadlock inside a completion callback. `closed` is
/// thrown where `from` is empty. The time-out is that of each 64; behind one that is not answered
/// in time no more are asked for, and the rest has timed_out too. Cost: a round trip for each 64.
UCXIO_EXPORT std::vector<opened_name> open_each(client& from, std::span<const std::string> names,
                                                access wanted = access::read,
                                                const io_options& options = {});

/// What came of one of many short files.
struct fetched_name {
  std::vector<std::byte> bytes = {};  ///< All of it; nothing where there is an error.
  std::error_code error = {};
};

/// Returns what is in many short files, of `most` bytes at most each, and waits for their answers
/// together. A server sends what its system has in memory with the answer, so that nothing is
/// opened; the rest is opened and read, and a file that is changed meanwhile is read as any other.
/// Returns as many as there are names, in order. Errors: in each of them, as of `open_each` and
/// `remote_region::read_at`; message_truncated (it is longer). `closed` is thrown where `from` is
/// empty. The time-out is as of `open_each`. Cost: a round trip for each 64, and for each 64 KiB of
/// a dozen; two more for each dozen that does not come like this.
UCXIO_EXPORT std::vector<fetched_name> fetch_each(client& from, std::span<const std::string> names,
                                                  std::size_t most, const io_options& options = {});

/// A short file that is going to be written.
struct short_file {
  std::string name = {};
  std::span<const std::byte> bytes = {};  ///< All that is to be in it.
};

/// Writes many short files of stores, each whole or not at all, and waits for the answers together.
/// They go with the questions, so that nothing is opened; what is too long for that, or goes to a
/// server of before this, is created, written and committed as any other file.
/// `how` is `replace` or `fresh`. Completes: when each is there under its name, or will not be by
/// this; not known is that of one whose error is timed_out, revoked, io_error, no_memory or a lost
/// connection's.
/// Lifetime: the bytes, until this returns. Returns as many as there are files, in order.
/// Errors: in each of them, as of `client::create`, `remote_region::flush` and `client::commit`;
/// busy also where the server had no room in time, and where two have one name, unless either just
/// replaces the other. The time-out is that of each 2 MiB or 256 files; behind some for which it
/// passed no more are sent, and the rest has the same error. Thrown:
/// `closed` where `to` is empty, invalid_argument (another `how`). Cost: a round trip for each
/// 2 MiB; a copy of the bytes at either end.
UCXIO_EXPORT std::vector<std::error_code> store_each(client& to, std::span<const short_file> files,
                                                     creation how = creation::replace,
                                                     const io_options& options = {});

}  // namespace ucx
