// Mounts that only the calling thread sees, and the processes that it starts.
#pragma once

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "support/files/temporary_directory.hpp"

namespace ucx::test {

/// Leaves the others' mounts, by the rights of root or of a namespace of users of its own. Returns
/// whether that is permitted.
inline bool leave_shared_mounts() {
  if (::unshare(CLONE_NEWNS) == 0) return true;
  const std::string user = std::to_string(::geteuid());
  const std::string group = std::to_string(::getegid());
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  // Who is nobody there can make no file.
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/uid_map") << user << ' ' << user << " 1";
  std::ofstream("/proc/self/gid_map") << group << ' ' << group << " 1";
  return true;
}

/// Keeps what is mounted at and below `at` from now on from other processes. The root of a process
/// that was moved there need not be a mount: then `at` becomes one.
inline bool keep_mounts_private(const char* at) {
  const auto make_private = [](const char* where, unsigned long how) {
    return ::mount("none", where, nullptr, how | MS_PRIVATE, nullptr) == 0;
  };
  return make_private("/", MS_REC) || make_private(at, 0) ||
         (::mount(at, at, nullptr, MS_BIND, nullptr) == 0 && make_private(at, 0));
}

/// A file system of few bytes, with its directory; gone with its test.
class small_disk {
 public:
  explicit small_disk(std::size_t bytes) {
    const std::string at = folder_ / "";
    is_there_ = leave_shared_mounts() && keep_mounts_private(at.c_str()) &&
                ::mount("tmpfs", at.c_str(), "tmpfs", 0, size_of(bytes).c_str()) == 0;
    if (!is_there_) why_not_ = std::error_code(errno, std::generic_category()).message();
  }
  ~small_disk() {
    const std::string at = folder_ / "";
    if (is_there_) ::umount2(at.c_str(), MNT_DETACH);
  }
  small_disk(const small_disk&) = delete;
  small_disk& operator=(const small_disk&) = delete;

  bool is_there() const noexcept { return is_there_; }
  const std::string& why_not() const noexcept { return why_not_; }
  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }

  /// Makes it as large as that, and full or not thereby.
  void resize(std::size_t bytes, const std::string& other = "") {
    const std::string at = folder_ / "";
    const std::string options = size_of(bytes) + other;
    if (::mount("tmpfs", at.c_str(), "tmpfs", MS_REMOUNT, options.c_str()) != 0) {
      throw std::system_error(errno, std::generic_category(), "remount");
    }
  }

 private:
  static std::string size_of(std::size_t bytes) { return "size=" + std::to_string(bytes); }

  const temporary_directory folder_;
  bool is_there_ = false;
  std::string why_not_;
};

}  // namespace ucx::test
