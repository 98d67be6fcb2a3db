#include "os/socket_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "os/folder_lock.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

/// Of one process, in the directory for sockets.
constexpr int most_socket_files = 10'000;
/// Of all, where what killed servers left is removed.
constexpr int most_looked_at = 1000;

errc code_of(int number) noexcept {
  switch (number) {
    case EACCES:
    case EPERM:
    case EROFS:
      return errc::permission_denied;
    case ENOENT:
    case ENOTDIR:
      return errc::no_such_name;
    case ENOSPC:
    case EDQUOT:
      return errc::no_space;
    case EMFILE:
    case ENFILE:
      return errc::too_many_files;
    case ENOMEM:
      return errc::no_memory;
    default:
      return errc::io_error;
  }
}

failure of_errno(int number, const std::string& what) {
  return {code_of(number), what + ": " + std::generic_category().message(number)};
}

std::string user_words(::uid_t user) { return "belongs to user " + std::to_string(user); }

/// Opens a directory in which no other user can replace what this one makes.
result<owned_descriptor> open_safe_directory(const std::string& path) {
  const std::string what = "the directory \"" + path + "\"";
  owned_descriptor opened(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened) return of_errno(errno, what);
  struct ::stat facts = {};
  if (::fstat(opened.get(), &facts) != 0) return of_errno(errno, what);
  if (facts.st_uid != ::geteuid() && facts.st_uid != 0) {
    return failure{errc::not_secure, what + " " + user_words(facts.st_uid) +
                                         ", which could replace the socket by its own"};
  }
  const bool others_write = (facts.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  if (others_write && (facts.st_mode & S_ISVTX) == 0) {
    return failure{errc::not_secure,
                   what +
                       " may be changed by other users, which could replace the socket by "
                       "their own (chmod go-w)"};
  }
  return opened;
}

/// Returns whether a process listens there; errno where that can not be known.
int ask_for_listener(const std::string& path, bool& listens) noexcept {
  ::sockaddr_un there = {};
  there.sun_family = AF_UNIX;
  if (path.size() >= sizeof there.sun_path) return ENAMETOOLONG;
  std::copy(path.begin(), path.end(), there.sun_path);
  const owned_descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!probe) return errno;
  const auto* const address = reinterpret_cast<const ::sockaddr*>(&there);
  const int failed = ::connect(probe.get(), address, sizeof there) == 0 ? 0 : errno;
  listens = failed == 0 || failed == EAGAIN;
  return listens || failed == ECONNREFUSED || failed == ENOENT ? 0 : failed;
}

/// Says what is wrong with a directory that only this user may look into.
std::string complaint_about_own(const struct ::stat& facts) {
  if (S_ISLNK(facts.st_mode)) return "is a symbolic link, and " + user_words(facts.st_uid);
  if (!S_ISDIR(facts.st_mode)) return "is no directory, and " + user_words(facts.st_uid);
  if (facts.st_uid != ::geteuid()) return user_words(facts.st_uid);
  const bool others_enter = (facts.st_mode & (S_IRWXG | S_IRWXO)) != 0;
  return others_enter ? "is open to other users (chmod 700)" : "";
}

/// Looks at what was opened, which no other user can replace any more.
result<void> check_own_directory(const std::string& path) {
  const std::string what = "the directory of sockets \"" + path + "\"";
  const owned_descriptor opened(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct ::stat facts = {};
  if (!opened || ::fstat(opened.get(), &facts) != 0) return of_errno(errno, what);
  const std::string wrong = complaint_about_own(facts);
  if (wrong.empty()) return {};
  return failure{errc::not_secure, what + " " + wrong + "; repair that, or name another place"};
}

}  // namespace

result<std::string> socket_directory() {
  const char* const variable = ::secure_getenv("XDG_RUNTIME_DIR");
  const std::string_view runtime = variable != nullptr ? variable : "";
  const bool is_named = runtime.starts_with('/');
  const std::string parent = is_named ? std::string(runtime) : "/tmp";
  const std::string path =
      is_named ? parent + "/ucxio" : parent + "/ucxio-" + std::to_string(::geteuid());
  if (const auto safe = open_safe_directory(parent); !safe) {
    return failure{safe.why().code,
                   safe.why().text + (is_named ? ", which XDG_RUNTIME_DIR names" : "")};
  }
  if (::mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    return of_errno(errno, "making the directory of sockets \"" + path + "\"");
  }
  if (const auto own = check_own_directory(path); !own) return own.why();
  return path;
}

/// Another server of this library listens at what it made before it lets go of the lock.
void remove_stale_sockets(const std::string& prefix) noexcept {
  try {
    const auto directory = socket_directory();
    if (!directory) return;
    const owned_descriptor opened(::open(directory->c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!opened || lock_folder(opened.get())) return;
    std::error_code ec;
    int looked_at = 0;
    for (std::filesystem::directory_iterator each(*directory, ec), end; !ec && each != end;
         each.increment(ec)) {
      if (++looked_at > most_looked_at) return;
      const std::string name = each->path().filename().string();
      bool listens = true;
      if (!name.starts_with(prefix) || !each->is_socket(ec) ||
          ask_for_listener(each->path().string(), listens) != 0 || listens)
        continue;
      ::unlinkat(opened.get(), name.c_str(), 0);
    }
  } catch (const std::exception&) {  // they are left
  }
}

result<std::unique_ptr<socket_file>> socket_file::claim(const std::string& path) {
  if (!path.empty()) return claim_free(path);
  const auto directory = socket_directory();
  if (!directory) return directory.why();
  const std::string own = *directory + "/" + std::to_string(::getpid());
  for (int number = 1;; ++number) {
    const std::string end = number == 1 ? ".sock" : "-" + std::to_string(number) + ".sock";
    auto made = claim_free(own + end);
    if (made || made.why().code != errc::address_in_use || number == most_socket_files) return made;
  }
}

result<std::unique_ptr<socket_file>> socket_file::claim_free(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string name = path.substr(slash + 1);
  if (slash == std::string::npos || name.empty()) {
    return failure{errc::bad_address, "\"" + path + "\" names no file"};
  }
  auto directory = open_safe_directory(slash == 0 ? "/" : path.substr(0, slash));
  if (!directory) return directory.why();
  std::unique_ptr<socket_file> made(new socket_file(path, name, *std::move(directory)));
  if (const auto locked = made->lock(); !locked) return locked.why();
  if (const auto free = made->make_free(); !free) return free.why();
  return made;
}

result<void> socket_file::lock() const {
  const std::error_code ec = lock_folder(directory_.get());
  if (ec == errc::busy) return failure{ec, "another process holds the lock of its directory"};
  if (!ec || has_no_locks(ec)) return {};
  return of_errno(ec.value(), "locking its directory");
}

result<void> socket_file::make_free() const {
  struct ::stat facts = {};
  if (::fstatat(directory_.get(), name_.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return {};
    return of_errno(errno, "looking at what is there");
  }
  if (S_ISLNK(facts.st_mode)) return failure{errc::already_exists, "a symbolic link is there"};
  if (!S_ISSOCK(facts.st_mode)) return failure{errc::already_exists, "a file is there"};
  if (facts.st_uid != ::geteuid()) {
    return failure{errc::already_exists, "the socket there " + user_words(facts.st_uid)};
  }
  bool listens = false;
  if (const int unknown = ask_for_listener(path_, listens)) {
    return of_errno(unknown, "asking whether a server listens there");
  }
  if (listens) return failure{errc::address_in_use, "a server listens there"};
  if (::unlinkat(directory_.get(), name_.c_str(), 0) != 0 && errno != ENOENT) {
    return of_errno(errno, "removing what a killed server left there");
  }
  return {};
}

result<void> socket_file::bound() {
  struct ::stat facts = {};
  if (::fstatat(directory_.get(), name_.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) {
    return of_errno(errno, "looking at the socket");
  }
  if (!S_ISSOCK(facts.st_mode) || facts.st_uid != ::geteuid()) {
    return failure{errc::io_error, "another file is in the socket's place"};
  }
  owner_ = ::getpid();
  device_ = facts.st_dev;
  number_ = facts.st_ino;
  ::flock(directory_.get(), LOCK_UN);
  return {};
}

socket_file::~socket_file() {
  if (owner_ != ::getpid()) return;  // never bound, or a child's copy
  struct ::stat facts = {};
  if (::fstatat(directory_.get(), name_.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) return;
  const bool is_ours = facts.st_dev == device_ && facts.st_ino == number_;
  if (is_ours && S_ISSOCK(facts.st_mode)) ::unlinkat(directory_.get(), name_.c_str(), 0);
}

result<void> check_socket_file(const std::string& path) {
  struct ::stat facts = {};
  if (::stat(path.c_str(), &facts) != 0) {
    const int why = errno;
    if (why == EACCES) {
      return failure{errc::permission_denied,
                     "this user may not look into the directory of the socket"};
    }
    return failure{errc::connection_refused,
                   "no socket is there (" + std::generic_category().message(why) +
                       "); a server makes it when it begins, and removes it when it ends"};
  }
  if (S_ISSOCK(facts.st_mode)) return {};
  return failure{errc::connection_refused, "the file there is no socket"};
}

}  // namespace ucx::detail
