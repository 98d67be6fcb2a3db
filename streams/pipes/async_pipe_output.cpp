#include "pipes/async_pipe_output.hpp"

#include <algorithm>
#include <utility>

#include "ucx/error.hpp"
#include "ucx/memory_resources.hpp"

namespace ucx::detail {

bool async_pipe_output::serve(async_output& next) {
  if (next.source.done()) {  // given up
    if (next.what == async_output_kind::write) miss(next);
    if (next.what >= async_output_kind::close_output) give_up(errc::canceled, {});
    return true;
  }
  switch (next.what) {
    case async_output_kind::write:
      return write(next);
    case async_output_kind::flush:
      return flush(next);
    default:
      return close(next);
  }
}

/// Sends what was put.
bool async_pipe_output::flush_area() {
  if (used_ == 0) return true;
  const std::uint64_t before = output_.sent();
  try {
    if (!output_.flush(used_)) return false;
  } catch (...) {  // without memory; what was sent is not sent again
    if (output_.sent() != before) used_ = 0;
    throw;
  }
  used_ = 0;
  return true;
}

/// Returns whether what could not be done has failed, instead of waiting; ends it then.
bool async_pipe_output::ends(async_output& failed) {
  if (output_.would_wait()) return false;
  if (output_.is_broken()) used_ = 0;
  write_error_ = output_.error();
  write_text_ = output_.error_text();
  if (failed.what == async_output_kind::write) miss(failed);
  failed.source.complete(write_error_, write_text_);
  return true;
}

/// Not all that the program wrote is there: closing is no end to tell a reader, unless as much
/// follows.
void async_pipe_output::miss(const async_output& cut) noexcept {
  due_ = std::max<std::uint64_t>(due_, written() + (cut.from.size() - cut.done));
}

bool async_pipe_output::write(async_output& next) {
  // Bytes that fit one message go as one, so that bytes of other writers do not come between.
  if (next.done == 0 && next.from.size() > room() && !flush_area()) return ends(next);
  for (;;) {
    if (used_ > 0 && room() == 0 && !flush_area()) return ends(next);
    if (next.done == next.from.size()) break;
    if (!output_.ensure_area()) return ends(next);
    const std::size_t size = std::min(room(), next.from.size() - next.done);
    std::error_code failed;
    if (next.source.claim()) {
      copy_memory(output_.area().data() + used_, next.from.data() + next.done, size, {}, failed);
      if (!failed) {
        used_ += size;
        next.done += size;
      }
      next.source.unclaim();
    }
    if (failed) {
      write_error_ = failed;
      write_text_ = name_ + ": writing out of a device behind " + pipe_bytes_text(written()) +
                    ": " + failed.message();
      next.source.complete(failed, write_text_);
    }
    if (next.source.done()) {
      miss(next);
      return true;
    }
  }
  next.source.complete(output_.is_closed() ? make_error_code(errc::closed) : std::error_code());
  return true;
}

bool async_pipe_output::flush(async_output& next) {
  if (!flush_area()) return ends(next);
  // The last bytes that were put may be lost by now.
  if (output_.is_broken() && !output_.is_closed()) {
    next.source.complete(output_.error(), output_.error_text());
  } else {
    next.source.complete(output_.is_closed() ? result_ : std::error_code(), result_text_);
  }
  return true;
}

/// Leaves the end of one that closes the connections, too, to the caller.
bool async_pipe_output::close(async_output& next) {
  if (!output_.is_closed()) {
    const bool has_all = written() >= due_;
    const bool is_sent = has_all && flush_area();
    if (has_all && !is_sent && output_.would_wait()) return false;
    if (is_sent) {
      result_ = output_.close();
      if (result_ == errc::would_block) return false;
      if (result_) result_text_ = output_.error_text();
      if (result_ && result_text_.empty()) result_text_ = name_ + ": " + result_.message();
    } else if (has_all) {
      give_up(output_.error(), output_.error_text());
    } else {
      give_up(write_error_, write_text_);
    }
  }
  if (next.what == async_output_kind::close_output) next.source.complete(result_, result_text_);
  return true;
}

void async_pipe_output::give_up(std::error_code why, std::string text) {
  if (output_.is_closed()) return;
  result_ = why ? why : make_error_code(errc::canceled);
  output_.abort(result_);
  used_ = 0;
  result_text_ = text.empty() ? name_ + ": " + result_.message() : std::move(text);
}

}  // namespace ucx::detail
