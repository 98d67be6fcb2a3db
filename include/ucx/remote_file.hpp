// A published file as bytes at offsets, and how a file is created.
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
#include "ucx/error.hpp"
#include "ucx/old_option.hpp"
#include "ucx/request.hpp"
#include "ucx/to_string.hpp"
#include "ucx/url.hpp"
#include "ucx/version.hpp"

namespace ucx {

/// The beginning of a store's file that is opened to be written.
enum class creation : std::uint8_t {
  replace = 1,    ///< A new file. It replaces the present one when it is committed.
  exclusive = 2,  ///< A new file. The name must be free.
  append = 3,     ///< The present file, in place. A missing one is made at once.
  overwrite = 4,  ///< Like `replace`; but a name that was published by itself is opened as it is.
#if UCXIO_OLD_NAMES
  fresh [[deprecated("exclusive")]] = exclusive,
#endif
};

template <>
UCXIO_EXPORT std::string_view detail::enum_name(creation value) noexcept;

/// The options of `client::create`.
struct create_options {
  creation mode = creation::replace;
  bool readable = false;  ///< The written bytes can be read back.
};

class client;

/// The options of a file.
struct remote_file_options {
  access wanted = access::read;
  /// For one version: `create`.
  detail::old_option<std::optional<creation>> make = {};
  /// Makes the file like `client::create`; `wanted` then has `write`. Empty: the file has to exist.
  std::optional<creation> create = make.value_or({});
  /// How long each call may take. Zero means the worker's `operation_timeout`.
  std::chrono::nanoseconds timeout = std::chrono::nanoseconds::zero();
  /// Checks reads as `io_options::verify` says.
  bool verify = false;
};

/// The bytes of a published name at offsets, for a library that reads and writes files by `pread`
/// and `pwrite`. It is a `remote_region` that is opened by URL, has an end, grows, and is committed
/// when it is closed. Nothing is buffered: each call is at least one round trip.
/// Operations take effect in the order in which they were started. Later ones wait for a resize;
/// a resize or commit waits for a commit, too. A resize that is given up goes on once the server
/// was asked, and later ones wait for the answer. A read that has not ended may see later writes.
/// Threads: one thread at a time. Several files may share a connection.
class UCXIO_EXPORT remote_file {
 public:
  /// Makes an object without a file. Its calls fail with `closed`.
  remote_file() noexcept;
  /// Opens a URL over the process's shared connection (`client::shared`).
  /// Errors: bad_url (without a name), invalid_argument (to make it and not to write it); those of
  /// `client::open` and `client::create`, and of connecting.
  explicit remote_file(const url& name, const remote_file_options& options = {},
                       std::error_code& ec = throws);
  /// Opens the name `name` that the server of `from` publishes.
  remote_file(client& from, std::string_view name, const remote_file_options& options = {},
              std::error_code& ec = throws);

  remote_file(remote_file&& other) noexcept;
  remote_file& operator=(remote_file&& other) noexcept;
  /// Closes, and reports nothing. A new file gets no name where bytes are missing, or where an
  /// exception destroys this object. An exception that was on its way at opening does not count.
  ~remote_file();

  /// Opens like the constructor by client. `made` has no file before.
  /// Completes: in a round of progress, when `made` is open.
  /// Lifetime: `made`, until the request is done or gone.
  static request start_open(client& from, std::string_view name, const remote_file_options& options,
                            remote_file& made);

  bool is_open() const noexcept;
  /// Returns the size: the size at opening, and the bytes written through this object since, even
  /// if the server refuses them later.
  std::uint64_t size() const noexcept;

  /// Reads the bytes at `offset`, and returns how many: fewer than asked for only at the end, and
  /// none after it. Earlier writes are seen.
  /// Errors: permission_denied; that of an earlier write; content_changed (others cut the file
  /// off), io_error, revoked, connection_reset, timed_out, closed.
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> into,
                      std::error_code& ec = throws);

  /// Writes all of `from`. The bytes between the end and `offset` read as zero.
  /// Completes: when `from` can be used again. The bytes are visible after `sync()`, which may also
  /// be the first to report that the server refused them.
  /// Errors: no_space (nothing was written: it ends after a fixed size, or after `max_file_size`),
  /// permission_denied, and those of the connection.
  void write_at(std::uint64_t offset, std::span<const std::byte> from,
                std::error_code& ec = throws);

  /// Makes the file `size` bytes long. Added bytes are zero.
  /// Errors: not_supported (it has a fixed size, and another one); those of `client::resize`.
  void resize(std::uint64_t size, std::error_code& ec = throws);

  /// Returns when every written byte is visible at the server, in the system's memory.
  /// Errors: the first failure of a write since the last call; no_space (the disk, a quota).
  void sync(std::error_code& ec = throws);

  /// Like `sync`, and every byte is then on the server's disk. A new file then has its name. For a
  /// name that was published by itself it is `sync`.
  /// Errors: those of `sync`; those of `client::commit`; the refusal of bytes of a new file that
  /// were not written again: the file gets no name.
  void commit(std::error_code& ec = throws);

  /// Makes everything visible, gives a new file its name, and closes in any case. Idempotent.
  /// Errors: those of `commit`, and then a new file that has no name yet is thrown away;
  /// would_deadlock (in a handler: it stays open).
  void close(std::error_code& ec = throws);

  // As the calls without `start_`, and with their errors: each is done when that call would return.
  // A read sees the writes that were started before it; the others cover them. Writes that are
  // canceled are missing: the file gets no name until they were written again.
  /// `count` is how many bytes were read.
  /// Lifetime: `into` and `count`, until the request is done.
  request start_read_at(std::uint64_t offset, std::span<std::byte> into, std::size_t& count);
  /// Lifetime: `from`, until the request is done.
  request start_write_at(std::uint64_t offset, std::span<const std::byte> from);
  request start_resize(std::uint64_t size);
  request start_sync();
  request start_commit();
  /// The object is closed at once: no further call finds it open.
  request start_close();

  /// Returns the open name in words, as error texts have it.
  std::string description() const;

 private:
  struct state;

  std::shared_ptr<state> state_;
};

}  // namespace ucx
