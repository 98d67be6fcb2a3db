#include "ucx/error.hpp"

namespace ucx {
namespace {

const char* text_of(errc value) noexcept {
  switch (value) {
    case errc::invalid_argument:
      return "invalid argument";
    case errc::out_of_range:
      return "offset and length reach outside the region";
    case errc::no_space:
      return "the write reached the end of a region of fixed size";
    case errc::permission_denied:
      return "the region was not exposed for this access";
    case errc::no_such_region:
      return "the owner has no such region";
    case errc::stale_region:
      return "the owner restarted or replaced the region; get a new descriptor";
    case errc::revoked:
      return "the owner withdrew the region";
    case errc::bad_descriptor:
      return "the bytes are not an intact region descriptor";
    case errc::bad_address:
      return "not an address";
    case errc::version_mismatch:
      return "the peer speaks another version of the wire format";
    case errc::protocol_error:
      return "the peer sent something that the protocol does not allow";
    case errc::bad_configuration:
      return "unknown UCX configuration key, bad value, or unknown transport or device";
    case errc::feature_disabled:
      return "the context was made without the feature that this needs";
    case errc::not_supported:
      return "not supported by this transport or this version of UCX";
    case errc::host_not_found:
      return "the host's name has no address";
    case errc::unreachable:
      return "no route to the peer, or no transport in common with it";
    case errc::connection_refused:
      return "nobody listens there, or the peer rejected the connection";
    case errc::connection_reset:
      return "the connection was lost: the peer died, closed, or fell silent";
    case errc::address_in_use:
      return "another process listens on this address";
    case errc::timed_out:
      return "the deadline passed first";
    case errc::canceled:
      return "the operation was canceled";
    case errc::closed:
      return "the object was closed on this side";
    case errc::would_deadlock:
      return "a blocking wait inside a completion callback would never end";
    case errc::busy:
      return "a resource is used up for now; try again";
    case errc::no_memory:
      return "out of memory";
    case errc::no_shared_memory:
      return "out of shared memory; see the size of /dev/shm";
    case errc::no_lockable_memory:
      return "memory could not be pinned; raise the limit of locked memory (ulimit -l)";
    case errc::too_many_files:
      return "out of file descriptors; raise the limit of open files (ulimit -n)";
    case errc::message_truncated:
      return "the message is larger than the buffer";
    case errc::io_error:
      return "input/output error of the device or the operating system";
    case errc::unexpected:
      break;
  }
  return "unexpected error of UCX";
}

/// Returns the portable condition that says the same, or none.
std::error_condition portable(errc value) noexcept {
  switch (value) {
    case errc::invalid_argument:
    case errc::bad_address:
    case errc::bad_configuration:
      return std::errc::invalid_argument;
    case errc::out_of_range:
      return std::errc::result_out_of_range;
    case errc::no_space:
      return std::errc::no_space_on_device;
    case errc::permission_denied:
      return std::errc::permission_denied;
    case errc::no_such_region:
      return std::errc::no_such_file_or_directory;
    case errc::bad_descriptor:
      return std::errc::bad_message;
    case errc::version_mismatch:
      return std::errc::protocol_not_supported;
    case errc::protocol_error:
      return std::errc::protocol_error;
    case errc::feature_disabled:
    case errc::not_supported:
      return std::errc::not_supported;
    case errc::unreachable:
      return std::errc::host_unreachable;
    case errc::connection_refused:
      return std::errc::connection_refused;
    case errc::connection_reset:
      return std::errc::connection_reset;
    case errc::address_in_use:
      return std::errc::address_in_use;
    case errc::timed_out:
      return std::errc::timed_out;
    case errc::canceled:
      return std::errc::operation_canceled;
    case errc::closed:
      return std::errc::bad_file_descriptor;
    case errc::would_deadlock:
      return std::errc::resource_deadlock_would_occur;
    case errc::busy:
      return std::errc::resource_unavailable_try_again;
    case errc::no_memory:
    case errc::no_shared_memory:
    case errc::no_lockable_memory:
      return std::errc::not_enough_memory;
    case errc::too_many_files:
      return std::errc::too_many_files_open;
    case errc::message_truncated:
      return std::errc::message_size;
    case errc::io_error:
      return std::errc::io_error;
    case errc::stale_region:
    case errc::revoked:
    case errc::host_not_found:
    case errc::unexpected:
      break;
  }
  return {};
}

class ucxio_category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "ucxio"; }
  std::string message(int value) const override { return text_of(static_cast<errc>(value)); }
  std::error_condition default_error_condition(int value) const noexcept override {
    const std::error_condition found = portable(static_cast<errc>(value));
    return found ? found : std::error_condition(value, *this);
  }
};

}  // namespace

const std::error_category& error_category() noexcept {
  // Never destroyed: error codes may outlive every static object.
  static const ucxio_category* const category = new ucxio_category;
  return *category;
}

std::error_code make_error_code(errc value) noexcept {
  return {static_cast<int>(value), error_category()};
}

error::error(std::error_code code, const std::string& text) : std::ios_base::failure(text, code) {}

error::~error() = default;

}  // namespace ucx
