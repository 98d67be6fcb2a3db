#include "copying/store_content.hpp"

#include <string>
#include <system_error>

namespace ucx::tool {
namespace {

namespace fs = std::filesystem;

/// Where a writable store keeps what has no name yet: nothing in one is served.
constexpr const char* spool = ".ucxio-unfinished";

bool can_be_told(const std::string& path, const url& store) {
  std::error_code ec;
  store.with_name(store.name().empty() ? path : store.name() + '/' + path, ec);
  return !ec;
}

}  // namespace

bool serves_nothing(const fs::path& directory, const url& store, const std::stop_token& stop) {
  std::error_code ec;
  fs::recursive_directory_iterator at(directory, ec);
  for (; !ec && at != fs::recursive_directory_iterator(); at.increment(ec)) {
    if (stop.stop_requested()) return false;
    std::error_code unknown;  // it has gone by now
    if (at->path().filename() == spool) {
      at.disable_recursion_pending();
    } else if (at->symlink_status(unknown).type() == fs::file_type::regular &&
               can_be_told(at->path().lexically_relative(directory).string(), store)) {
      return false;
    }
  }
  return !ec;
}

}  // namespace ucx::tool
