#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "ucx/access.hpp"
#include "ucx/create_options.hpp"
#include "ucx/export.hpp"
#include "ucx/url.hpp"

namespace ucx {

class client;

/// How a file is opened.
struct remote_file_options {
  access wanted = access::read;
  /// Makes it, or lets it be made, as `client::create` does; `wanted` then has `write`. Nothing: it
  /// has to be there.
  std::optional<creation> make = {};
  /// How long each call may take; zero means the worker's `operation_timeout`.
  std::chrono::nanoseconds timeout = std::chrono::nanoseconds::zero();
  /// Has what is read checked as `io_options::verify` says.
  bool verify = false;
};

/// Bytes at offsets of what a server publishes, as a library asks for them that reads and writes
/// files by `pread` and `pwrite`: a `remote_region` that is opened by URL, has an end, grows, and
/// is committed when it is closed. Nothing is buffered: each call is at least one round trip.
/// Threads: one thread at a time; several files may share a connection.
class UCXIO_EXPORT remote_file {
 public:
  /// Opens a URL over the connection that all share (`client::shared`).
  /// Errors: bad_url (without a name), invalid_argument (to make it and not to write it); those of
  /// `client::open` and `client::create`, and of connecting.
  explicit remote_file(const url& name, const remote_file_options& options = {});
  remote_file(const url& name, const remote_file_options& options, std::error_code& ec);
  /// Opens what the server of `from` publishes as `name`.
  remote_file(client& from, std::string_view name, const remote_file_options& options = {});
  remote_file(client& from, std::string_view name, const remote_file_options& options,
              std::error_code& ec);

  remote_file(remote_file&& other) noexcept;
  remote_file& operator=(remote_file&& other) noexcept;
  /// Closes, and reports nothing; but what was made gets no name where bytes are missing, or where
  /// an exception destroys it that was not on its way when it was opened.
  ~remote_file();

  bool is_open() const noexcept;
  /// Returns how many bytes there are: those when it was opened, and what was written through this
  /// since, also where the server refuses it later.
  std::uint64_t size() const noexcept;

  /// Reads what there is at `offset`, and returns how many bytes: fewer than asked for only at the
  /// end, behind which there are none. What was written before is in it.
  /// Errors: permission_denied; what an earlier write failed with; content_changed (others cut the
  /// file off), io_error, revoked, connection_reset, timed_out, closed.
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> into);
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> into, std::error_code& ec);

  /// Writes all of `from`; what is between the end and `offset` reads as zero.
  /// Completes: when `from` can be used again. It is visible after `sync()`, which may also be the
  /// first to tell that the server refused it.
  /// Errors: no_space (nothing was written: it ends behind what has a fixed size, or behind
  /// `largest_file`), permission_denied, and those of the connection.
  void write_at(std::uint64_t offset, std::span<const std::byte> from);
  void write_at(std::uint64_t offset, std::span<const std::byte> from, std::error_code& ec);

  /// Makes it `size` bytes long; what is added is zero. Errors: not_supported (it has a fixed size,
  /// and another one); those of `client::resize`.
  void resize(std::uint64_t size);
  void resize(std::uint64_t size, std::error_code& ec);

  /// Returns when everything that was written is visible at the server, where the system has it.
  /// Errors: the first failure of a write since the last time; no_space (the disk, a quota).
  void sync();
  void sync(std::error_code& ec);

  /// The same, and has it on the server's disk; a new file has its name then. Over what was
  /// published by itself it is `sync`. Errors: as `sync`; those of `client::commit`; for a new file
  /// whose bytes were refused once, and not written again, why they were: it gets no name.
  void commit();
  void commit(std::error_code& ec);

  /// Makes everything visible, gives a new file its name, and lets go. Idempotent. Errors: as
  /// `commit`, and then a new file that has no name yet is thrown away. It is closed in any case.
  void close();
  void close(std::error_code& ec);

  /// Returns what is open in words, as it stands in error texts.
  std::string description() const;

 private:
  struct state;

  std::unique_ptr<state> state_;
};

}  // namespace ucx
