// Published names, and the options of a store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>

#include "ucx/access.hpp"
#include "ucx/old_option.hpp"
#include "ucx/version.hpp"

namespace ucx {

/// The options of a store (`server::publish_store`).
struct store_options {
  /// The prefix of the names: "data" makes "data/a/b.bin" of the file a/b.bin. Empty: the files'
  /// names are their paths within the directory.
  std::string prefix = {};
  /// Lets clients create, replace, append to, rename and remove files.
  bool writable = false;
  /// The bytes of all files together may not grow beyond this. They are counted when the store is
  /// published, and as its clients change files. Changes by other programs are not counted.
  std::uint64_t quota = std::numeric_limits<std::uint64_t>::max();
  /// For one version: `max_file_size`.
  detail::old_option<std::uint64_t> largest_file = {};
  /// No file may be written beyond this length.
  std::uint64_t max_file_size = largest_file.value_or(std::uint64_t{1} << 62U);
  /// Puts every file on the device before its writer is told that it is committed.
  bool sync_on_commit = false;
  /// For one version: `max_open_files`.
  detail::old_option<std::size_t> most_open_files = {};
  /// The files that all clients, and each client, may have open. Each takes a file descriptor. Zero
  /// for all: half of the descriptors that the process may have when the store is published
  /// (`ulimit -n`), from 64 to 65536. The open files of the server's other stores are subtracted.
  /// Zero for each: half of that number.
  std::size_t max_open_files = most_open_files.value_or(0);
  /// For one version: `max_open_files_per_client`.
  detail::old_option<std::size_t> most_open_files_of_one_client = {};
  std::size_t max_open_files_per_client = most_open_files_of_one_client.value_or(0);
  /// For one version: `max_writers`.
  detail::old_option<std::size_t> most_writers = {};
  /// The files that may be open for writing. Zero: half of `max_open_files`, 2048 at most. For
  /// each file the server keeps up to `write_window` bytes that the disk has not taken yet. A file
  /// that is opened while 64 others are has 1 MiB at most.
  std::size_t max_writers = most_writers.value_or(0);
  std::size_t write_window = std::size_t{8} << 20U;
};

namespace detail {
class published;
struct core_access;
}  // namespace detail

/// One name of a server's catalogue, or a store, published while this object lives.
/// Threads: as for `memory_region`.
class [[nodiscard]] UCXIO_EXPORT publication {
 public:
  /// Makes an empty publication.
  publication() noexcept = default;
  publication(publication&& other) noexcept;
  publication& operator=(publication&& other) noexcept;
  /// Closes.
  ~publication();

  /// Returns the name; for a store, its prefix.
  const std::string& name() const noexcept;
  std::uint64_t size() const noexcept;
  access granted() const noexcept;
  /// Returns the published memory. It is empty for files and stores, and after `close()`.
  std::span<std::byte> bytes() const noexcept;
  /// Returns the name's URL, or an empty text where the server does not listen.
  /// Errors: forked_child.
  std::string url() const;

  /// Returns whether peers can still open the name.
  bool is_open() const noexcept;

  /// Withdraws the name. Clients that have it open are told, and their accesses fail with
  /// `errc::revoked`. Returns when no answer of this process reads the memory any more. Over
  /// sockets it waits for no client. Over UCX, one that does not take its answer within the
  /// worker's `heartbeat_timeout` is dropped. For RDMA hardware and mapped memory see
  /// `memory_region::close()`. Idempotent.
  void close() noexcept;

 private:
  friend struct detail::core_access;
  std::shared_ptr<detail::published> core_;
};

}  // namespace ucx
