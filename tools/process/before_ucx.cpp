#include "process/before_ucx.hpp"

#include <sys/auxv.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <vector>

#include "process/shutdown_signals.hpp"
#include "ucx/version.hpp"

namespace ucx::tool {
namespace {

/// Earlier ones would warn of a variable that they do not know.
constexpr version_number waits_long{1, 21, 0};

/// While UCX is initialised it waits 50 ms for each of eight functions that it patches, so that
/// threads that are inside leave them. That is 0.4 s of a processor, more than most commands take,
/// and here is one thread.
char short_wait[] = "UCX_MEM_BISTRO_GRACE_DURATION=1ms";
/// Else its lines stand in the standard output, in the middle of what somebody reads from there.
char log_to_stderr[] = "UCX_LOG_FILE=stderr";

bool hangup_was_ignored = false;

/// Returns whether this program can start itself by its path. It can not where the loader was
/// started by name, because the loader is the program then. It may not where it has rights that
/// what is at the path now should not get.
bool may_start_again() noexcept { return ::getauxval(AT_BASE) != 0 && ::getauxval(AT_SECURE) == 0; }

/// Adds a variable that is not there.
void add(std::vector<char*>& environment, char* setting) {
  const std::string_view text(setting);
  const std::string_view name = text.substr(0, text.find('=') + 1);
  for (const char* each : environment) {
    if (std::string_view(each).starts_with(name)) return;  // the user's choice
  }
  environment.push_back(setting);
}

/// Starts this program once more, with what UCX reads before anything of this program runs. By its
/// path: of "/proc/self/exe" its name would be "exe". Where the system starts no program this one
/// goes on as it is.
void add_to_environment(char** argv, char** environment) noexcept {
  if (!may_start_again()) return;
  std::array<char, PATH_MAX> program{};
  try {
    std::vector<char*> longer;
    for (char** each = environment; *each != nullptr; ++each) longer.push_back(*each);
    const std::size_t before = longer.size();
    add(longer, log_to_stderr);
    if (ucx_version() >= waits_long) add(longer, short_wait);
    if (longer.size() == before) return;
    longer.push_back(nullptr);
    if (::readlink("/proc/self/exe", program.data(), program.size() - 1) < 0) {
      // Without /proc: as it was started, which nothing has changed yet.
      const auto* const started = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
      if (started == nullptr) return;
      ::execve(started, argv, longer.data());
      return;
    }
    ::execve(program.data(), argv, longer.data());
  } catch (const std::exception&) {
    // No memory: then it takes its time.
  }
}

void before_ucx(int, char** argv, char** environment) {
  hangup_was_ignored = is_ignored(SIGHUP);
  add_to_environment(argv, environment);
}

/// glibc's loader calls this, with these arguments, before the constructors of the libraries, UCX's
/// among them (System V ABI, "Initialization and Termination Functions"). Those of libc have not
/// run either: there is no environment but the one that is passed. Other loaders may not call it.
[[gnu::section(".preinit_array"), gnu::used]] void (*preinit)(int, char**, char**) = before_ucx;

}  // namespace

void restore_hangup() noexcept {
  if (std::getenv("UCX_DEBUG_SIGNO") != nullptr) return;
  std::signal(SIGHUP, hangup_was_ignored ? SIG_IGN : SIG_DFL);
}

}  // namespace ucx::tool
