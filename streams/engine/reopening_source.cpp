#include "engine/reopening_source.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::chrono::nanoseconds first_rest = std::chrono::milliseconds(10);
constexpr std::chrono::nanoseconds longest_rest = std::chrono::seconds(1);

/// A server that was started again may not have published everything yet.
constexpr std::chrono::nanoseconds longest_publishing = std::chrono::seconds(1);

/// A program that destroys a stream with something left to write has not asked to wait for a
/// server.
constexpr std::chrono::nanoseconds moment = std::chrono::seconds(1);

bool is_lost(std::error_code status) noexcept {
  return status == errc::connection_reset || status == errc::timed_out;
}

/// Returns whether opening may succeed later. There may be no server at the moment. The file may be
/// open by this stream itself, over a connection whose loss the server does not know of yet.
bool may_pass(std::error_code why) noexcept {
  return is_lost(why) || why == errc::connection_refused || why == errc::unreachable ||
         why == errc::host_not_found || why == errc::busy || why == errc::no_such_name;
}

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw error(errc::content_changed, "going on with \"" + name + "\": " + why);
}

}  // namespace

reopening_source::reopening_source(std::unique_ptr<byte_source> first, std::string name, use how,
                                   opener open, std::chrono::nanoseconds patience)
    : now_(std::move(first)),
      name_(std::move(name)),
      use_(how),
      open_(std::move(open)),
      patience_(patience),
      seen_size_(now_->size()) {}

std::uint64_t reopening_source::measure(std::uint64_t known, std::chrono::nanoseconds wait) {
  seen_size_ = now_->measure(known, wait);
  started_end_ = 0;
  return seen_size_;
}

void reopening_source::commit() {
  if (!is_lost(now_->status()) || now_->is_unnamed()) now_->commit();
}

void reopening_source::forget_writes(std::uint64_t missing) {
  seen_size_ = std::max(seen_size_, std::min(started_end_, missing));
  started_end_ = 0;
  now_->forget_writes(missing);
}

void reopening_source::hurry() noexcept { patience_ = std::min(patience_, moment); }

request reopening_source::start_write_at(std::uint64_t offset, std::span<const std::byte> from) {
  request started = now_->start_write_at(offset, from);
  started_end_ = std::max<std::uint64_t>(started_end_, offset + from.size());
  written_end_ = std::max(written_end_, started_end_);
  return started;
}

bool reopening_source::recover() {
  const std::error_code lost = now_->status();
  if (!is_lost(lost)) return false;
  if (use_ == use::makes_new) {
    throw error(lost, "\"" + name_ +
                          "\" is a new file that was not committed, and gone with its connection: "
                          "it has to be opened and written again");
  }
  std::unique_ptr<byte_source> found = open_in_time();
  require_same(*found);
  now_ = std::move(found);
  seen_size_ = now_->size();
  started_end_ = 0;
  return true;
}

std::unique_ptr<byte_source> reopening_source::open_in_time() {
  const clock::time_point begun = clock::now();
  bool misses = false;               // the name, as the last attempt saw the server
  clock::time_point missed = begun;  // since then
  std::chrono::nanoseconds rest = first_rest;
  for (;;) {
    try {
      return open_();
    } catch (const error& failed) {
      const clock::time_point now = clock::now();
      if (!misses) missed = now;
      misses = failed.code() == errc::no_such_name;
      const bool is_gone = misses && now - missed >= longest_publishing;
      if (!may_pass(failed.code()) || is_gone || now - begun >= patience_) throw;
      const std::chrono::nanoseconds left = patience_ - (now - begun);
      // A server does not tell that it is back. There is nothing to drive meanwhile: the worker of
      // the lost source is the client's own, and every attempt makes another one.
      std::this_thread::sleep_for(std::min(rest, left));
      rest = std::min(2 * rest, longest_rest);
    }
  }
}

/// Compares with what was open. A writer knows how long the file may be.
void reopening_source::require_same(const byte_source& found) const {
  const content_id before = now_->content();
  const content_id by_now = found.content();
  if (by_now.object != before.object) {
    refuse(name_, "another file, or memory, has the name by now, or it is that of another server");
  }
  if (use_ == use::reads && by_now.generation != before.generation) {
    refuse(name_, "the file was changed meanwhile");
  }
  // Bytes that are added to a file that was cut off would leave a hole before them.
  const bool relies_on_size = use_ == use::follows || use_ == use::appends;
  if (relies_on_size && found.size() < least_size()) {
    refuse(name_, "the file is shorter than it was");
  }
  if (use_ == use::appends && found.size() > std::max(seen_size_, written_end_)) {
    refuse(name_, "somebody else has added to the file");
  }
}

}  // namespace ucx::detail
