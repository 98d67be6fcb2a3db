#include "os/socket_beside.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <utility>

#include "os/socket_file.hpp"
#include "os/socket_lookup.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

constexpr const char* name_begin = "tls-";

/// Says whose process it is, where it is another user's.
std::string words_of_stranger(const listening_facts& listens, const socket_address& port) {
  if (listens.user == ::geteuid()) return {};
  return "a process of user " + std::to_string(listens.user) + " listens at " + to_string(port);
}

/// Returns the name of the file.
result<std::string> name_beside(const socket_address& port) {
  const std::optional<listening_facts> listens = socket_lookup().find_listener(port);
  if (!listens || listens->file == 0) {
    return failure{errc::not_supported,
                   "the system does not tell which process listens at " + to_string(port)};
  }
  if (std::string stranger = words_of_stranger(*listens, port); !stranger.empty()) {
    return failure{errc::not_secure, std::move(stranger)};
  }
  return name_begin + std::to_string(port.port()) + '-' + std::to_string(listens->file) + ".sock";
}

}  // namespace

result<std::string> socket_beside(const socket_address& port) {
  const auto name = name_beside(port);
  if (!name) return name.why();
  const auto directory = socket_directory();
  if (!directory) return directory.why();
  return *directory + '/' + *name;
}

result<std::string> find_socket_beside(const socket_address& port) {
  auto path = socket_beside(port);
  if (!path) return path;
  struct ::stat facts = {};
  const bool is_there = ::lstat(path->c_str(), &facts) == 0 && S_ISSOCK(facts.st_mode);
  if (is_there && facts.st_uid == ::geteuid()) return path;
  return failure{is_there ? errc::not_secure : errc::no_such_name,
                 "the server at " + to_string(port) + " has no Unix socket at " + *path};
}

std::string stranger_at(const socket_address& port) {
  const auto listens = socket_lookup().find_listener(port);
  return listens ? words_of_stranger(*listens, port) : std::string();
}

void remove_stale_sockets_beside() noexcept { remove_stale_sockets(name_begin); }

}  // namespace ucx::detail
