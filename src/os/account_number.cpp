#include "os/account_number.hpp"

#include <grp.h>
#include <pwd.h>

#include <cerrno>
#include <vector>

namespace ucx::detail {
namespace {

/// Asks the system with a buffer that is large enough.
template <class Entry, class Ask>
std::optional<Entry> ask_for_account(Ask ask) {
  std::vector<char> room(1024);
  for (;;) {
    Entry found = {};
    Entry* answer = nullptr;
    const int failed = ask(&found, room, &answer);
    if (failed != ERANGE || room.size() > (std::size_t{1} << 20U)) {
      if (answer == nullptr) return std::nullopt;
      return found;  // its texts are in `room`, and go
    }
    room.resize(room.size() * 2);
  }
}

}  // namespace

std::optional<std::uint32_t> number_of_account(bool is_group, const std::string& name) {
  if (is_group) {
    const auto found = ask_for_account<::group>([&](auto* into, auto& room, auto** answer) {
      return ::getgrnam_r(name.c_str(), into, room.data(), room.size(), answer);
    });
    return found ? std::optional(found->gr_gid) : std::nullopt;
  }
  const auto found = ask_for_account<::passwd>([&](auto* into, auto& room, auto** answer) {
    return ::getpwnam_r(name.c_str(), into, room.data(), room.size(), answer);
  });
  return found ? std::optional(found->pw_uid) : std::nullopt;
}

}  // namespace ucx::detail
