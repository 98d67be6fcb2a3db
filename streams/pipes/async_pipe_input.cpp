#include "pipes/async_pipe_input.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "ucx/error.hpp"
#include "ucx/memory_resources.hpp"

namespace ucx::detail {

/// Returns how the wait for bytes to read ended; nothing while it goes on.
std::optional<pipe_input::outcome> async_pipe_input::next_area() {
  if (used_ < input_.area().size()) return pipe_input::outcome::done;
  const pipe_input::outcome came = refill();
  if (came == pipe_input::outcome::failed && input_.error() == errc::would_block) return {};
  return came;
}

/// Gives the area back, and waits for the next one. Where it throws, the old one may still be
/// there, all of it used.
pipe_input::outcome async_pipe_input::refill() {
  try {
    const pipe_input::outcome came = input_.refill();
    used_ = 0;
    return came;
  } catch (...) {
    if (input_.area().empty()) used_ = 0;
    throw;
  }
}

/// Returns whether there is a next area now. Throws as `refill` does.
bool async_pipe_input::has_next() {
  try {
    const bool ready = input_.is_ready();
    used_ = 0;
    if (!ready) return false;
  } catch (...) {
    if (input_.area().empty()) used_ = 0;
    throw;
  }
  return refill() == pipe_input::outcome::done;
}

/// Copies what is there; returns why it could not.
std::error_code async_pipe_input::copy(async_read& to) {
  std::size_t done = 0;
  std::error_code failed;
  for (;;) {
    const std::span<std::byte> area = input_.area().subspan(used_);
    const std::size_t size = std::min(area.size(), to.into.size() - done);
    copy_memory(to.into.data() + done, area.data(), size, {}, failed);
    if (failed) break;
    used_ += size;
    done += size;
    if (done == to.into.size()) break;
    try {
      if (!has_next()) break;
    } catch (const std::bad_alloc&) {  // what was copied counts; the next read tries again
      break;
    }
  }
  if (done > 0) failed.clear();  // the next read tells it, or goes on
  if (!failed) *to.count = done;
  return failed;
}

void async_pipe_input::serve(std::list<async_read>& reads, std::list<async_read>& over) {
  while (!reads.empty()) {
    async_read& next = reads.front();
    if (next.into.empty()) {  // nothing has to come for it
      if (next.source.claim()) *next.count = 0;
      next.source.complete();
    } else if (!next.source.done()) {
      const auto came = next_area();
      if (!came) return;
      if (*came == pipe_input::outcome::failed) {
        next.source.complete(input_.error(), input_.error_text());
      } else if (next.source.claim()) {
        *next.count = 0;
        next.source.complete(*came == pipe_input::outcome::done ? copy(next) : std::error_code());
      }
    }
    over.splice(over.end(), reads, reads.begin());
  }
}

}  // namespace ucx::detail
