#include "pipes/pipe_path.hpp"

#include <random>
#include <utility>

#include "ucx/error.hpp"
#include "ucx/request.hpp"

namespace ucx::detail {

namespace {

/// A receive that no message matches, because no peer knows its tag.
request start_nothing(worker& driven, std::chrono::nanoseconds limit) {
  std::random_device random;
  const std::uint64_t tag = (std::uint64_t{random()} << 32U) | random();
  return driven.start_receive(tag, std::span<std::byte>(), {.timeout = limit});
}

}  // namespace

pipe_waiter::pipe_waiter(worker& driven, std::stop_token stop, std::size_t most)
    : driven_(driven), stop_(std::move(stop)), shared_(std::make_shared<shared>()) {
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

void pipe_waiter::begin(std::chrono::nanoseconds limit) noexcept {
  limit_ = limit;
  timer_ = {};
  has_timer_ = false;
}

std::error_code pipe_waiter::wait(std::span<request* const> wanted) {
  if (!shared_) return errc::closed;
  if (stopped()) return errc::canceled;
  if (limit_ > limit_.zero() && !std::exchange(has_timer_, true)) {
    timer_ = start_nothing(driven_, limit_);
  }
  if (has_timer_ && timer_.done()) return errc::timed_out;
  std::vector<request>& awaited = shared_->awaited;
  const std::size_t before = awaited.size();
  for (request* each : wanted) awaited.push_back(std::move(*each));
  if (has_timer_) awaited.push_back(std::move(timer_));
  std::error_code ec;
  try {
    const auto ended = wait_any(awaited, pipe_patience);
    if (!ended || *ended == before + wanted.size()) ec = errc::timed_out;
  } catch (const error& failed) {
    ec = failed.code();
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) *wanted[i] = std::move(awaited[before + i]);
  if (has_timer_) timer_ = std::move(awaited.back());
  awaited.resize(before);
  return stopped() ? make_error_code(errc::canceled) : ec;
}

}  // namespace ucx::detail
