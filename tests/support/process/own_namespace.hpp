// Programs in namespaces of their own: util-linux's unshare, where there is one and it may.
#pragma once

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "support/process/command.hpp"

namespace ucx::test {

/// How to start a program in namespaces of its own, by the rights of root or of a user namespace.
class own_namespace {
 public:
  /// `kinds` are options of unshare's: "--net", say.
  explicit own_namespace(const std::vector<std::string>& kinds) {
    if (::access(program, X_OK) != 0) {
      why_not_.append("there is no ").append(program);
      return;
    }
    if (::getuid() != 0) {
      for (const char* const each : {"--user", "--map-root-user"}) options_.emplace_back(each);
    }
    for (const std::string& each : kinds) options_.push_back(each);
    const command_result tried = command(program, line({"/bin/true"})).finish();
    if (tried.code != 0) why_not_ = "no namespace can be made here: " + tried.err;
  }

  /// Nothing where it can be done.
  const std::string& why_not() const noexcept { return why_not_; }
  /// The arguments of `program` that start `words` there.
  std::vector<std::string> line(const std::vector<std::string>& words) const {
    std::vector<std::string> whole = options_;
    for (const std::string& each : words) whole.push_back(each);
    return whole;
  }

  static constexpr const char* program = "/usr/bin/unshare";

 private:
  std::vector<std::string> options_;
  std::string why_not_;
};

/// For a program in a network namespace of its own: its loopback device, which is down there.
/// Returns whether it is up, and with it 127.0.0.1.
inline bool raise_loopback() noexcept {
  const int any = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ::ifreq loopback = {};
  std::memcpy(loopback.ifr_name, "lo", 3);
  bool up = ::ioctl(any, SIOCGIFFLAGS, &loopback) == 0;
  loopback.ifr_flags |= IFF_UP;
  up = up && ::ioctl(any, SIOCSIFFLAGS, &loopback) == 0;
  ::close(any);
  return up;
}

}  // namespace ucx::test
