#pragma once

#include <ios>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "ucx/to_string.hpp"
#include "ucx/version.hpp"

namespace ucx {

/// The errors of this library. `docs/reference/errors.md` has the cause of each, the remedy, the
/// `std::errc` that it equals, and UCX's statuses.
enum class errc {
  invalid_argument = 1,  ///< The call makes no sense as it stands.
  out_of_range,          ///< Offset and length reach outside the region.
  no_space,              ///< A fixed size, the disk, a quota or `max_file_size` is exceeded.
  permission_denied,     ///< The region, store or system does not allow this access.
  no_such_region,        ///< The owner, or this client, has no such region.
  stale_region,        ///< The owner, or the region, is another incarnation than the descriptor's.
  revoked,             ///< The owner withdrew the region.
  bad_descriptor,      ///< The bytes are not an intact `remote_descriptor`, or UCX refuses its key.
  bad_address,         ///< The text or bytes are not an address.
  version_mismatch,    ///< The peer speaks another version of the wire format.
  protocol_error,      ///< The peer sent something that the protocol does not allow.
  bad_configuration,   ///< A wrong UCX key, value, transport or device, or a wrong `UCXIO_...`.
  feature_disabled,    ///< The context was made without the feature that the call needs.
  not_supported,       ///< This transport, UCX or region can not do it.
  host_not_found,      ///< The host's name has no address.
  unreachable,         ///< No route, or no transport in common with the peer.
  connection_refused,  ///< No process listens there, or the peer rejected the connection.
  connection_reset,    ///< The peer died, gave the connection up, or fell silent.
  address_in_use,      ///< Another process listens on this address.
  timed_out,           ///< The deadline passed first.
  canceled,            ///< The caller gave the operation up.
  closed,              ///< The object was closed, moved from or never made on this side.
  would_deadlock,      ///< A handler made a call that waits for the worker that runs it.
  busy,                ///< Out of a resource that comes back by itself; try again.
  no_memory,           ///< Out of memory.
  no_shared_memory,    ///< Out of shared memory (`/dev/shm`).
  no_lockable_memory,  ///< Memory could not be pinned (`ulimit -l`).
  too_many_files,      ///< Out of file descriptors (`ulimit -n`).
  message_truncated,   ///< The message, or the file, is larger than the buffer.
  io_error,            ///< The device or the operating system failed.
  unexpected,          ///< UCX reported something that has no better name here.
  bad_url,             ///< The text is not a URL of a server or of a published name.
  bad_name,            ///< Not a name: empty, not UTF-8, too long, or not a path in a store.
  no_such_name,        ///< The server publishes nothing under this name; the file does not exist.
  already_exists,      ///< The name is taken, or the directory is not empty.
  content_changed,     ///< The file behind the region was cut off, or is another one.
  not_secure,          ///< Refused: others could reach this process; see `docs/how-to/security.md`.
  closed_by_peer,      ///< The peer said goodbye and left: an orderly end.
  no_rdma,             ///< RDMA hardware was asked for, and a lane does not use it.
  would_block,         ///< No room at the peer, or no buffer in the pool; an event reports room.
  header_too_long,     ///< The header of a message is longer than `max_header_size()`.
  no_such_handler,     ///< The peer has no handler for active messages of this number.
  message_refused,     ///< The receiver gave up, or threw the message away.
  message_withdrawn,   ///< The sender gave the message up before it was all here.
  empty_buffer,        ///< The buffer holds nothing: it was sent, moved or released before.
  buffer_too_small,    ///< More bytes than the buffer, or any buffer of the pool, has.
  bad_pool,            ///< A pool without buffers, of buffers without bytes, or larger than can be.
  pooled_buffer,       ///< The buffer's memory belongs to a pool, and has to go back there.
  checksum_mismatch,   ///< The bytes did not match the owner's checksum, three times.
  broken_pipe,         ///< The reader of a pipe left before it had read all, or was too slow.
  too_many_store_files,  ///< The store has `store_options::max_open_files` files open.
  /// The client has `store_options::max_open_files_per_client` files open.
  too_many_client_files,
  too_many_writers,   ///< The store has `store_options::max_writers` files open for writing.
  stale_store,        ///< A store's directory was removed, unmounted, or hidden by a mount.
  forked_child,       ///< In a child of `fork()`: the object, or UCX itself, is the parent's.
  signature_differs,  ///< The peer's function of this name has other arguments or another result.
  call_failed,        ///< The function that was called threw; `error::cause()` has its code.
  /// The connection was lost after a call was sent, and before its answer: it may have run.
  call_outcome_unknown,
#if UCXIO_OLD_NAMES
  damaged_on_the_way [[deprecated("checksum_mismatch")]] = checksum_mismatch,
  buffer_gone [[deprecated("empty_buffer")]] = empty_buffer,
  store_gone [[deprecated("stale_store")]] = stale_store,
  too_many_of_store [[deprecated("too_many_store_files")]] = too_many_store_files,
  too_many_of_client [[deprecated("too_many_client_files")]] = too_many_client_files,
#endif
};

template <>
UCXIO_EXPORT std::string_view detail::enum_name(errc value) noexcept;

/// Returns the category of `errc`; its name is "ucxio".
UCXIO_EXPORT const std::error_category& error_category() noexcept;

/// Makes the error code of `value`.
UCXIO_EXPORT std::error_code make_error_code(errc value) noexcept;

/// Stands for "throw". A function that can fail has `std::error_code& ec = throws` as its last
/// parameter, unless it returns a `request`, or reports by the state of a stream.
/// `docs/reference/errors.md` lists the few that only throw. A call without a code throws `error`
/// where the operation fails. A call with a code throws nothing for that: `ec` gets the failure,
/// and is cleared where there is none. Programs do not name this object. It never holds an error.
UCXIO_EXPORT extern std::error_code throws;

/// The one exception that this library throws for failed operations. It derives from
/// `std::ios_base::failure`, which users of streams catch. `what()` names the operation, the peer,
/// the region and the offset, and has UCX's own words where there are any.
class UCXIO_EXPORT error : public std::ios_base::failure {
 public:
  /// Makes an exception for `code`. `text` says what was tried, on what, and what UCX said.
  error(std::error_code code, const std::string& text, std::optional<int> ucx_status = {});
  /// Makes one of a call whose function threw `cause`, at the peer.
  error(std::error_code code, const std::string& text, std::optional<int> ucx_status,
        std::error_code cause);
  ~error() override;

  /// Returns the status by which UCX failed (a `ucs_status_t`, below 0). `code()` says which of our
  /// errors it is. Returns nothing where the failure was not UCX's, or UCX did not say why.
  std::optional<int> ucx_status() const noexcept { return ucx_status_; }
  /// Returns the code of the exception that a function of the peer threw, where this is
  /// `call_failed`. It is of this library or of `std::errc`. Empty where the function's exception
  /// had no such code.
  std::error_code cause() const noexcept { return cause_; }

 private:
  std::optional<int> ucx_status_;
  std::error_code cause_;
};

/// Returns the name of a status of UCX, "UCS_ERR_CONNECTION_RESET" for -25. Returns
/// "UCS_ERR_LINK_FAILURE" or "UCS_ERR_ENDPOINT_FAILURE" for the numbers that UCX keeps for those,
/// and an empty name for any other number.
UCXIO_EXPORT std::string_view ucx_status_name(int status) noexcept;

}  // namespace ucx

template <>
struct std::is_error_code_enum<ucx::errc> : std::true_type {};
