// Starts a program with a filter of system calls, as containers have: ucxio-denied-calls
// CALL=ERRNO[,CALL=ERRNO...] PROGRAM [ARGUMENT...], with ERRNO EPERM or ENOSYS.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string_view>
#include <vector>

namespace {

const std::map<std::string_view, std::uint32_t> calls{{"statx", SYS_statx},
                                                      {"renameat2", SYS_renameat2},
                                                      {"faccessat2", SYS_faccessat2},
                                                      {"fstat", SYS_fstat},
                                                      {"newfstatat", SYS_newfstatat}};

/// Adds what answers one call with an error.
bool deny(std::vector<::sock_filter>& filter, std::string_view text) {
  const std::size_t equals = text.find('=');
  const auto call = calls.find(text.substr(0, equals));
  if (equals == text.npos || call == calls.end()) return false;
  const std::uint32_t number = text.substr(equals + 1) == "ENOSYS" ? ENOSYS : EPERM;
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call->second, 0, 1));
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | number));
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  std::vector<::sock_filter> filter{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(::seccomp_data, nr))};
  for (std::string_view left(argv[1]); !left.empty();) {
    const std::size_t comma = left.find(',');
    if (!deny(filter, left.substr(0, comma))) return 2;
    left.remove_prefix(comma == left.npos ? left.size() : comma + 1);
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const ::sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    std::perror("a filter of system calls");
    return 77;
  }
  ::execv(argv[2], argv + 2);
  std::perror(argv[2]);
  return 127;
}
