#include "process/connect_watch.hpp"

#include <sys/resource.h>

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <stop_token>
#include <system_error>

#include "output/exit_code.hpp"
#include "output/output.hpp"
#include "output/printable.hpp"

namespace ucx::tool {
namespace {

bool is_address_space_limited() noexcept {
  struct ::rlimit limit = {};
  return ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

}  // namespace

connect_watch::connect_watch(const std::string& where, std::chrono::nanoseconds limit) {
  if (!is_address_space_limited()) return;
  const std::string text = "ucxio: " + printable(where) +
                           ": connecting does not end; UCX may be short of address space: raise "
                           "its limit (ulimit -v)\n";
  try {
    watch_.emplace([text, limit](const std::stop_token& over) {
      std::mutex mutex;
      std::condition_variable_any wakes;
      std::unique_lock guard(mutex);
      wakes.wait_for(guard, over, limit, [] { return false; });
      if (over.stop_requested()) return;
      say(text);
      std::_Exit(static_cast<int>(exit_code::timed_out));
    });
  } catch (const std::system_error&) {  // no thread is to be had: it goes on unwatched
  }
}

}  // namespace ucx::tool
