#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace ucx {

/// How a directory is published (`server::publish_store`).
struct store_options {
  /// What the names of its files begin with: "data" makes "data/a/b.bin" of the file a/b.bin.
  /// Empty: the files' names are their paths within the directory.
  std::string prefix = {};
  /// Lets clients create, replace, append to, rename and remove files.
  bool writable = false;
  /// The bytes of all files together may not grow beyond this. They are counted when the store is
  /// published and by what its clients do, not by what others do to the directory.
  std::uint64_t quota = std::numeric_limits<std::uint64_t>::max();
  /// No file may be written beyond this.
  std::uint64_t largest_file = std::uint64_t{1} << 62U;
  /// Has every file on the device before its writer is told that it is committed.
  bool sync_on_commit = false;
  /// Files that clients may have open, all of them and each: each takes a file descriptor. Zero,
  /// for all: half of what the process may have open when the store is published (`ulimit -n`), 64
  /// at least, 65536 at most, of which what is open of the server's other stores is taken off; for
  /// each: half of that number.
  std::size_t most_open_files = 0;
  std::size_t most_open_files_of_one_client = 0;
  /// Files that may be open for writing. Zero: half of `most_open_files`, 2048 at most. For each
  /// the server keeps up to `write_window` bytes that the disk has not taken yet; for those that
  /// are opened while 64 others are, 1 MiB at most.
  std::size_t most_writers = 0;
  std::size_t write_window = std::size_t{8} << 20U;
};

}  // namespace ucx
