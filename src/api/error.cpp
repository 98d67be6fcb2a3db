#include "ucx/error.hpp"

#include <algorithm>
#include <iterator>

#include "base/never_destroyed.hpp"
#include "ucp/forked_ucp.hpp"

namespace ucx {
namespace {

/// The text of one value, and the portable condition that says the same.
struct meaning {
  errc value;
  const char* text;
  std::errc portable = std::errc();  // none
};

constexpr meaning meanings[]{
    {errc::invalid_argument, "invalid argument", std::errc::invalid_argument},
    {errc::out_of_range, "offset and length reach outside the region",
     std::errc::result_out_of_range},
    {errc::no_space,
     "there is no room for it: a disk or a quota is full, or a region of fixed size ends",
     std::errc::no_space_on_device},
    {errc::permission_denied, "this access is not allowed", std::errc::permission_denied},
    {errc::no_such_region, "the owner has no such region", std::errc::no_such_file_or_directory},
    {errc::stale_region, "the owner restarted or replaced the region; get a new descriptor"},
    {errc::revoked, "the owner withdrew the region"},
    {errc::bad_descriptor, "the bytes are not an intact region descriptor", std::errc::bad_message},
    {errc::bad_address, "not an address", std::errc::invalid_argument},
    {errc::version_mismatch, "the peer speaks another version of the wire format",
     std::errc::protocol_not_supported},
    {errc::protocol_error, "the peer sent something that the protocol does not allow",
     std::errc::protocol_error},
    {errc::bad_configuration,
     "wrong configuration: a key, value, transport or device of UCX, a variable UCXIO_..., or a "
     "line of a file of tokens",
     std::errc::invalid_argument},
    {errc::feature_disabled, "the context was made without the feature that this needs",
     std::errc::not_supported},
    {errc::not_supported, "not supported", std::errc::not_supported},
    {errc::host_not_found, "the host's name has no address"},
    {errc::unreachable, "no route to the peer, or no transport in common with it",
     std::errc::host_unreachable},
    {errc::connection_refused,
     "nothing listens there, or another program does, or the peer rejected the connection",
     std::errc::connection_refused},
    {errc::connection_reset, "the connection was lost: the peer died, gave it up, or fell silent",
     std::errc::connection_reset},
    {errc::address_in_use, "another process listens on this address", std::errc::address_in_use},
    {errc::timed_out, "the deadline passed first", std::errc::timed_out},
    {errc::canceled, "the operation was canceled", std::errc::operation_canceled},
    {errc::closed, "the object was closed on this side", std::errc::bad_file_descriptor},
    {errc::would_deadlock, "a blocking wait inside a completion callback would never end",
     std::errc::resource_deadlock_would_occur},
    {errc::busy, "a resource is used up for now; try again",
     std::errc::resource_unavailable_try_again},
    {errc::no_memory, "out of memory, or of what the process may have of it (ulimit -v, ulimit -d)",
     std::errc::not_enough_memory},
    {errc::no_shared_memory,
     "out of shared memory; see the size of /dev/shm, and that of files (ulimit -f)",
     std::errc::not_enough_memory},
    {errc::no_lockable_memory,
     "memory could not be pinned; raise the limit of locked memory (ulimit -l)",
     std::errc::not_enough_memory},
    {errc::too_many_files, "out of file descriptors; raise the limit of open files (ulimit -n)",
     std::errc::too_many_files_open},
    {errc::message_truncated, "the message is larger than the buffer", std::errc::message_size},
    {errc::io_error, "input/output error of the device or the operating system",
     std::errc::io_error},
    {errc::bad_url, "not a URL of the form ucx://host:port/name", std::errc::invalid_argument},
    {errc::bad_name, "not a name: empty, not UTF-8, too long, or no path in a store",
     std::errc::invalid_argument},
    {errc::no_such_name, "there is nothing of this name", std::errc::no_such_file_or_directory},
    {errc::already_exists, "the name is taken, or the directory is not empty",
     std::errc::file_exists},
    {errc::content_changed, "the content behind the region was cut off or replaced"},
    {errc::not_secure, "refused, because it is not secure", std::errc::operation_not_permitted},
    {errc::closed_by_peer, "the peer closed the connection", std::errc::connection_reset},
    {errc::no_rdma, "there is no RDMA hardware on the way to the peer", std::errc::not_supported},
    {errc::would_block, "there is no room for it now", std::errc::operation_would_block},
    {errc::header_too_long, "the header of the message is too long", std::errc::message_size},
    {errc::no_such_handler, "the peer has no handler for messages of this number"},
    {errc::message_refused, "the receiver gave up, or threw the message away"},
    {errc::message_withdrawn, "the sender gave the message up before it was all here"},
    {errc::empty_buffer, "the buffer holds nothing: it was sent, moved or released before",
     std::errc::invalid_argument},
    {errc::buffer_too_small, "the buffer has room for fewer bytes", std::errc::result_out_of_range},
    {errc::bad_pool, "not a pool: it has no buffers, or buffers of no bytes, or is too large",
     std::errc::invalid_argument},
    {errc::pooled_buffer, "the buffer is of a pool, and has to go back there",
     std::errc::invalid_argument},
    {errc::checksum_mismatch, "what arrived is not what the owner sent: the checksums differ",
     std::errc::bad_message},
    {errc::broken_pipe, "the reader left before it had read everything", std::errc::broken_pipe},
    {errc::too_many_store_files,
     "as many files of the store are open as it lets: its server may raise "
     "store_options::max_open_files (ucxio serve --max-open-files)",
     std::errc::too_many_files_open},
    {errc::too_many_client_files,
     "this client has as many files of the store, or names of the server, open as it may: its "
     "server may raise store_options::max_open_files_per_client (ucxio serve "
     "--max-open-files-per-client) or server_options::limits (--limit)",
     std::errc::too_many_files_open},
    {errc::too_many_writers,
     "as many files of the store are open for writing as it lets: its server may raise "
     "store_options::max_writers (ucxio serve --max-writers)",
     std::errc::too_many_files_open},
    {errc::stale_store, "the store's directory was removed or unmounted at its server",
     std::errc::io_error},
    {errc::forked_child,
     "the object belongs to the parent of this process, or UCX was used before fork(); open new "
     "ones over sockets (ucxs, ucx+tcp, ucx+unix), or exec() a new program",
     std::errc::not_supported},
    {errc::signature_differs, "the peer's function of this name has another signature"},
    {errc::call_failed, "the function that was called threw an exception"},
    {errc::call_outcome_unknown,
     "the connection was lost before the call was answered: the function may have run"},
    // Last: stands for what only a later version of this library knows.
    {errc::unexpected, "unexpected error of UCX"},
};

const meaning& meaning_of(int value) noexcept {
  const auto* const found =
      std::find_if(std::begin(meanings), std::end(meanings),
                   [value](const meaning& each) { return static_cast<int>(each.value) == value; });
  return found != std::end(meanings) ? *found : *std::prev(std::end(meanings));
}

class ucxio_category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "ucxio"; }
  std::string message(int value) const override { return meaning_of(value).text; }
  std::error_condition default_error_condition(int value) const noexcept override {
    const std::errc portable = meaning_of(value).portable;
    if (portable == std::errc()) return {value, *this};
    return portable;
  }
};

/// The refusal of inherited objects has a number beside UCX's.
std::optional<int> of_ucx(std::optional<int> status) noexcept {
  return status == detail::status_inherited ? std::nullopt : status;
}

}  // namespace

const std::error_category& error_category() noexcept {
  static const detail::never_destroyed<ucxio_category> category;  // as codes may be used at exit
  return *category;
}

std::error_code make_error_code(errc value) noexcept {
  return {static_cast<int>(value), error_category()};
}

std::error_code throws;

error::error(std::error_code code, const std::string& text, std::optional<int> ucx_status)
    : std::ios_base::failure(text, code), ucx_status_(of_ucx(ucx_status)) {}

error::error(std::error_code code, const std::string& text, std::optional<int> ucx_status,
             std::error_code cause)
    : std::ios_base::failure(text, code), ucx_status_(of_ucx(ucx_status)), cause_(cause) {}

error::~error() = default;

}  // namespace ucx
