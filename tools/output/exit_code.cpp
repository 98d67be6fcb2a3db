#include "output/exit_code.hpp"

#include <cerrno>
#include <exception>

#include "output/output.hpp"
#include "ucx/error.hpp"

namespace ucx::tool {

exit_code exit_code_of(const std::error_code& cause) noexcept {
  if (cause.category() == std::generic_category() || cause.category() == std::system_category()) {
    return exit_code_of_errno(cause.value());
  }
  if (cause.category() != error_category()) return exit_code::failure;
  switch (static_cast<errc>(cause.value())) {
    case errc::bad_url:
    case errc::bad_name:
    case errc::bad_address:
    case errc::out_of_range:
    case errc::already_exists:
    case errc::signature_differs:
      return exit_code::usage;
    case errc::no_such_name:
    case errc::no_such_handler:
      return exit_code::not_found;
    case errc::host_not_found:
    case errc::unreachable:
    case errc::connection_refused:
    case errc::version_mismatch:
    case errc::protocol_error:
    case errc::address_in_use:
      return exit_code::no_connection;
    case errc::permission_denied:
    case errc::not_secure:
      return exit_code::permission;
    case errc::timed_out:
      return exit_code::timed_out;
    case errc::connection_reset:
    case errc::closed_by_peer:
    case errc::closed:
    case errc::call_outcome_unknown:
    case errc::revoked:
    case errc::broken_pipe:
      return exit_code::connection_lost;
    case errc::content_changed:
    case errc::stale_region:
    case errc::no_such_region:
      return exit_code::content_changed;
    case errc::checksum_mismatch:
      return exit_code::integrity;
    case errc::no_space:
      return exit_code::no_space;
    default:
      return exit_code::failure;
  }
}

exit_code exit_code_of_errno(int error) noexcept {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return exit_code::not_found;
    case EACCES:
    case EPERM:
    case EROFS:
      return exit_code::permission;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return exit_code::no_space;
    default:
      return exit_code::failure;
  }
}

exit_code exit_code_of_handled() noexcept {
  try {
    throw;
  } catch (const output_closed&) {
    return exit_code::ok;
  } catch (const failure& failed) {
    return failed.code();
  } catch (const error& failed) {
    return exit_code_of(failed.code());
  } catch (...) {
    return exit_code::failure;
  }
}

bool failure::ends_all() const noexcept {
  if (reach_ == reach::one_file) return false;
  switch (code_) {
    case exit_code::no_connection:
    case exit_code::connection_lost:
    case exit_code::timed_out:
    case exit_code::no_space:
    case exit_code::interrupted:
      return true;
    default:
      return false;
  }
}

std::string_view exit_code_table() noexcept {
  return "Exit codes:\n"
         "  0    success; also when nobody reads the standard output any more\n"
         "  1    a failure without a number of its own\n"
         "  2    usage: a bad argument, a malformed URL, an offset behind the end\n"
         "  3    not found: the name, the function, or the file that was to be served\n"
         "  4    no connection: refused, unreachable, host not found, not a ucxio server,\n"
         "       another version, too many clients; serve: cannot listen there\n"
         "  5    permission denied, or refused because the network is not trusted, or because a\n"
         "       server may not fetch from another\n"
         "  6    timed out\n"
         "  7    lost: the server died or ended, the name was withdrawn, or the other end of a\n"
         "       pipe was lost, before the end; call: the function may have run\n"
         "  8    the content changed while it was read: it is not one whole\n"
         "  9    the standard output could not be written\n"
         "  10   integrity: bytes arrived damaged, by their checksums, three times, or as a\n"
         "       compressed piece (--compress); or both ends of a copy differ (--verify)\n"
         "  11   partial: of several files some were not copied, hashed or removed, or of several\n"
         "       readers of a pipe some were dropped\n"
         "  12   no space: the disk, or the quota, where it was to be written is full, or more\n"
         "       than there is room for\n"
         "  130  interrupted: SIGINT, as shells report it (143: SIGTERM); a server ends with 0\n";
}

}  // namespace ucx::tool
