#include "os/unix_peer.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fstream>

namespace ucx::detail {
namespace {

constexpr std::uint32_t usual_overflow = 65534;

std::uint32_t number_in(const char* path) noexcept {
  try {
    std::ifstream file(path);
    std::uint32_t number = 0;
    return file >> number ? number : usual_overflow;
  } catch (...) {  // out of memory for a buffer
    return usual_overflow;
  }
}

/// Leaves them empty where the system does not tell: then fewer are trusted.
std::vector<::gid_t> groups_of(int socket) {
  std::vector<::gid_t> groups(32);
  for (int tries = 0; tries < 4; ++tries) {
    auto size = static_cast<::socklen_t>(groups.size() * sizeof(::gid_t));
    const int failed = ::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size);
    const std::size_t told = size / sizeof(::gid_t);
    if (failed == 0) {
      groups.resize(std::min(told, groups.size()));
      return groups;
    }
    if (errno != ERANGE || told <= groups.size()) break;
    groups.resize(told);
  }
  return {};
}

::gid_t overflow_group() noexcept { return number_in("/proc/sys/kernel/overflowgid"); }

bool has(const std::vector<std::uint32_t>& named, std::uint32_t number) noexcept {
  return std::find(named.begin(), named.end(), number) != named.end();
}

}  // namespace

std::optional<unix_peer> unix_peer::of(int socket) {
  ::ucred told = {};
  ::socklen_t size = sizeof told;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &told, &size) != 0 || size != sizeof told) {
    return std::nullopt;
  }
  return unix_peer{told.uid, told.gid, told.pid, groups_of(socket)};
}

std::string unix_peer::words() const {
  return "user " + std::to_string(user) + ", process " + std::to_string(process);
}

::uid_t overflow_user() noexcept { return number_in("/proc/sys/kernel/overflowuid"); }

std::string trusted_peers::complaint() const {
  if (has(users, overflow_user())) {
    return "user " + std::to_string(overflow_user()) +
           " stands for all users of other user namespaces, and is never let in";
  }
  const ::gid_t nobodys = overflow_group();
  if (!has(groups, nobodys)) return {};
  return "group " + std::to_string(nobodys) + " stands for all groups of other user namespaces";
}

bool trusted_peers::trusts(const unix_peer& peer) const noexcept {
  if (peer.user == overflow_user() || peer.user == static_cast<::uid_t>(-1)) return false;
  if (peer.user == ::geteuid() || peer.user == 0 || has(users, peer.user)) return true;
  const ::gid_t nobodys = overflow_group();
  const auto counts = [&](::gid_t each) { return each != nobodys && has(groups, each); };
  return counts(peer.group) || std::any_of(peer.groups.begin(), peer.groups.end(), counts);
}

}  // namespace ucx::detail
