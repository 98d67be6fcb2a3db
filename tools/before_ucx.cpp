#include "before_ucx.hpp"

#include <unistd.h>

#include <array>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <vector>

#include "ucx/version.hpp"

namespace ucx::tool {
namespace {

/// Earlier ones would warn of a variable that they do not know.
constexpr version_number waits_long{1, 21, 0};
constexpr std::string_view wait_variable = "UCX_MEM_BISTRO_GRACE_DURATION=";
char short_wait[] = "UCX_MEM_BISTRO_GRACE_DURATION=1ms";

bool hangup_was_ignored = false;

/// Starts this program once more, where UCX would keep it waiting for nothing: while it is
/// initialised it waits 50 ms for each of eight functions that it patches, so that threads that are
/// inside leave them. That is 0.4 s of a processor, more than most commands take, and here is one
/// thread. Where the system starts no program this one goes on as it is.
void shorten_wait(char** argv, char** environment) noexcept {
  if (transport_version() < waits_long) return;
  std::array<char, PATH_MAX> program{};
  try {
    std::vector<char*> longer;
    for (char** each = environment; *each != nullptr; ++each) {
      if (std::string_view(*each).starts_with(wait_variable)) return;  // the user's choice
      longer.push_back(*each);
    }
    longer.insert(longer.end(), {short_wait, nullptr});
    if (::readlink("/proc/self/exe", program.data(), program.size() - 1) < 0) return;
    ::execve(program.data(), argv, longer.data());
  } catch (const std::exception&) {
    // No memory: then it takes its time.
  }
}

/// No sanitizer looks at what is so early.
[[gnu::no_sanitize("address", "thread", "undefined")]] void before_ucx(int, char** argv,
                                                                       char** environment) {
  struct ::sigaction now = {};
  hangup_was_ignored = ::sigaction(SIGHUP, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
  shorten_wait(argv, environment);
}

/// What the loader calls before the constructors of any library, as it does nothing else (System V
/// ABI, "Initialization and Termination Functions").
[[gnu::section(".preinit_array"), gnu::used]] void (*preinit)(int, char**, char**) = before_ucx;

}  // namespace

void restore_hangup() noexcept {
  if (std::getenv("UCX_DEBUG_SIGNO") != nullptr) return;
  std::signal(SIGHUP, hangup_was_ignored ? SIG_IGN : SIG_DFL);
}

}  // namespace ucx::tool
