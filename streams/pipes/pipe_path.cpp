#include "pipes/pipe_path.hpp"

#include <algorithm>
#include <random>
#include <utility>

#include "ucx/error.hpp"
#include "ucx/request.hpp"

namespace ucx::detail {

namespace {

/// A wait may end that much behind its limit.
constexpr std::chrono::milliseconds late_enough{1};

/// A receive that no message matches, because no peer knows its tag.
request start_nothing(worker& driven, std::chrono::nanoseconds limit) {
  std::random_device random;
  const std::uint64_t tag = (std::uint64_t{random()} << 32U) | random();
  return driven.start_receive(tag, std::span<std::byte>(), {.timeout = limit});
}

}  // namespace

void pipe_request::wake(const std::weak_ptr<pipe_woken>& told) {
  if (tells_) return;
  then([told](std::error_code) {
    if (const auto here = told.lock()) here->wake();
  });
  tells_ = true;
}

void pipe_request::leave(std::shared_ptr<const void> keep_alive) noexcept {
  try {
    orphan(std::move(keep_alive));
  } catch (...) {  // without memory it may have to wait
  }
  *this = pipe_request();
}

pipe_waiter::pipe_waiter(const pipe_path& path, std::stop_token stop, std::size_t most)
    : driven_(*path.driven),
      woken_(path.woken),
      stop_(std::move(stop)),
      shared_(std::make_shared<shared>()) {
  if (woken_) return;  // who is woken looks for a stop, too
  shared_->awaited.reserve(most + 2);
  if (!stop_.stop_possible()) return;
  shared_->awaited.push_back(start_nothing(driven_, pipe_patience));
  shared_->stop = &shared_->awaited.front();
  on_stop_.emplace(stop_, [this] {
    // On the thread that drives the worker: no other may touch requests of every mode.
    try {
      driven_.post([held = std::weak_ptr<shared>(shared_)] {
        if (const auto here = held.lock()) here->stop->cancel();
      });
    } catch (...) {  // without memory it ends at its time, or with the next wait
    }
  });
}

pipe_waiter::~pipe_waiter() { end(); }

void pipe_waiter::end() noexcept {
  // Behind this no callback runs, and what one has posted finds nothing.
  on_stop_.reset();
  shared_.reset();
  begin({});
}

/// A timer that is dropped wakes, as one that ends does. In steps, one that ends soon enough stays.
/// Else each step would wake the next one, and the worker would make no other progress.
void pipe_waiter::begin(std::chrono::nanoseconds limit) noexcept {
  limit_ = limit;
  const bool stays = woken_ && has_timer_ && !timer_.done() && limit > limit.zero() &&
                     timer_ends_ - std::chrono::steady_clock::now() <= limit + late_enough;
  if (stays) return;
  timer_ = {};
  has_timer_ = false;
}

std::error_code pipe_waiter::wait(std::span<pipe_request* const> wanted) {
  if (!shared_) return errc::closed;
  if (stopped()) return errc::canceled;
  if (limit_ > limit_.zero() && !std::exchange(has_timer_, true)) {
    timer_ = start_nothing(driven_, limit_);
    const auto longest = std::chrono::nanoseconds(std::chrono::hours(24));
    timer_ends_ = std::chrono::steady_clock::now() + std::min(limit_, longest);
  }
  if (has_timer_ && timer_.done()) return errc::timed_out;
  return woken_ ? leave_to_wake(wanted) : wait_in_call(wanted);
}

std::error_code pipe_waiter::wait_in_call(std::span<pipe_request* const> wanted) {
  std::vector<request>& awaited = shared_->awaited;
  const std::size_t before = awaited.size();
  for (pipe_request* each : wanted) awaited.push_back(std::move(static_cast<request&>(*each)));
  if (has_timer_) awaited.push_back(std::move(static_cast<request&>(timer_)));
  std::error_code ec;
  try {
    const auto ended = wait_any(awaited, pipe_patience);
    if (!ended || *ended == before + wanted.size()) ec = errc::timed_out;
  } catch (const error& failed) {
    ec = failed.code();
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    static_cast<request&>(*wanted[i]) = std::move(awaited[before + i]);
  }
  if (has_timer_) static_cast<request&>(timer_) = std::move(awaited.back());
  awaited.resize(before);
  return stopped() ? make_error_code(errc::canceled) : ec;
}

/// A request that has ended since it was looked at ends the wait at once, as in a call.
std::error_code pipe_waiter::leave_to_wake(std::span<pipe_request* const> wanted) {
  for (pipe_request* each : wanted) {
    if (each->done()) return {};
    each->wake(*woken_);
  }
  if (has_timer_) timer_.wake(*woken_);
  return errc::would_block;
}

}  // namespace ucx::detail
