#include "copying/watched_work.hpp"

#include <mutex>
#include <optional>

#include "output/exit_code.hpp"
#include "process/interruption.hpp"
#include "process/shutdown_signals.hpp"

namespace ucx::tool {

void run_watched(progress_mode mode, const transfer_counters& counters, bool may_be_drawn,
                 const std::function<void(progress_line&)>& work) {
  std::mutex mutex;
  std::optional<progress_line> line;
  std::optional<interruption> stop;
  const auto end = [&](int signal) {
    {
      const std::lock_guard guard(mutex);
      if (line) line->end(128 + signal);  // as shells report it
    }
    end_by(signal);
  };
  if (progress_line::is_shown(mode, may_be_drawn)) stop.emplace(end);
  {
    const std::lock_guard guard(mutex);
    line.emplace(mode, counters, may_be_drawn);
  }
  try {
    work(*line);
  } catch (...) {
    line->end(static_cast<int>(exit_code_of_handled()));
    throw;
  }
  line->end(static_cast<int>(exit_code::ok));
}

}  // namespace ucx::tool
