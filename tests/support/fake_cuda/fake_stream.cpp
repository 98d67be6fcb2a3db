#include "fake_device.hpp"

#include <chrono>
#include <utility>

#include "fake_results.hpp"

namespace ucx::test {

int fake_cuda::start(CUstream_st* stream, const fake_copy& wanted) {
  const std::lock_guard guard(mutex_);
  const auto found = streams_.find(stream);
  if (current() == nullptr) return invalid_context;
  if (found == streams_.end()) return invalid_handle;
  if (stream->context != current()) return invalid_handle;
  if (const int failure = check(wanted)) return failure;
  found->second.push_back({wanted});
  changed_.notify_all();
  return success;
}

int fake_cuda::make_stream(CUstream_st** made) {
  const std::lock_guard guard(mutex_);
  if (current() == nullptr) return initialised_ ? invalid_context : not_initialized;
  all_streams_.push_back(std::make_shared<CUstream_st>(CUstream_st{current(), success}));
  *made = all_streams_.back().get();
  streams_[*made];
  return success;
}

int fake_cuda::wait_for(CUstream_st* stream) {
  std::unique_lock guard(mutex_);
  if (current() == nullptr) return invalid_context;
  if (streams_.count(stream) == 0) return invalid_handle;
  changed_.wait(guard, [&] {
    const auto found = streams_.find(stream);
    return found == streams_.end() || (found->second.empty() && running_ != stream);
  });
  if (streams_.count(stream) == 0) return invalid_handle;
  if (contexts_.count(stream->context) == 0) return context_is_destroyed;
  return std::exchange(stream->failed, success);
}

int fake_cuda::end_stream(CUstream_st* stream) {
  const std::lock_guard guard(mutex_);
  return streams_.erase(stream) > 0 ? success : invalid_handle;
}

int fake_cuda::make_event(CUevent_st** made) {
  const std::lock_guard guard(mutex_);
  if (current() == nullptr) return initialised_ ? invalid_context : not_initialized;
  all_events_.push_back(std::make_shared<CUevent_st>(CUevent_st{current()}));
  *made = all_events_.back().get();
  events_.insert(*made);
  return success;
}

int fake_cuda::record(CUevent_st* event, CUstream_st* stream) {
  const std::lock_guard guard(mutex_);
  if (current() == nullptr) return invalid_context;
  const auto found = streams_.find(stream);
  if (found == streams_.end() || events_.count(event) == 0) return invalid_handle;
  if (event->context != stream->context) return invalid_handle;
  ++event->recorded;
  found->second.push_back({.reaches = event});
  changed_.notify_all();
  return success;
}

int fake_cuda::await(CUstream_st* stream, CUevent_st* event) {
  const std::lock_guard guard(mutex_);
  if (current() == nullptr) return invalid_context;
  const auto found = streams_.find(stream);
  if (found == streams_.end() || events_.count(event) == 0) return invalid_handle;
  found->second.push_back({.awaits = event, .count = event->recorded});
  changed_.notify_all();
  return success;
}

int fake_cuda::wait_for(CUevent_st* event) {
  std::unique_lock guard(mutex_);
  if (current() == nullptr) return invalid_context;
  if (events_.count(event) == 0) return invalid_handle;
  const unsigned count = event->recorded;
  changed_.wait(guard, [&] { return events_.count(event) == 0 || event->reached >= count; });
  if (events_.count(event) == 0) return context_is_destroyed;
  return std::exchange(event->failed, success);
}

int fake_cuda::end_event(CUevent_st* event) {
  const std::lock_guard guard(mutex_);
  return events_.erase(event) > 0 ? success : invalid_handle;
}

bool fake_cuda::may_run(const CUstream_st& stream, const std::deque<fake_step>& steps) {
  if (stream.held || steps.empty()) return false;
  const fake_step& next = steps.front();
  return next.awaits == nullptr || next.awaits->reached >= next.count;
}

void fake_cuda::run_step(CUstream_st& stream, const fake_step& next) {
  if (next.awaits != nullptr) return;
  if (next.reaches != nullptr) {
    ++next.reaches->reached;
    next.reaches->failed = std::exchange(stream.failed, success);
    return;
  }
  const int failed = run(next.copy);
  if (stream.failed == success) stream.failed = failed;
}

/// Takes a stream by chance, and does its next step; in between others may come.
void fake_cuda::run_copies() {
  std::unique_lock guard(mutex_);
  for (;;) {
    std::vector<CUstream_st*> ready;
    for (auto& [stream, steps] : streams_) {
      if (may_run(*stream, steps)) ready.push_back(stream);
    }
    if (held_ || ready.empty()) {
      changed_.wait(guard);
      continue;
    }
    CUstream_st* const chosen = ready[random_() % ready.size()];
    const std::chrono::microseconds late(random_() % 50);
    running_ = chosen;
    guard.unlock();
    std::this_thread::sleep_for(late);
    guard.lock();
    running_ = nullptr;
    const auto found = streams_.find(chosen);
    if (found != streams_.end() && may_run(*chosen, found->second)) {
      const fake_step next = found->second.front();
      found->second.pop_front();
      run_step(*chosen, next);
    }
    changed_.notify_all();
  }
}

void fake_cuda::hold_stream(CUstream_st* stream, bool hold) {
  const std::lock_guard guard(mutex_);
  stream->held = hold;
  changed_.notify_all();
}

std::size_t fake_cuda::events() {
  const std::lock_guard guard(mutex_);
  return events_.size();
}

void fake_cuda::hold_copies(bool hold) {
  const std::lock_guard guard(mutex_);
  held_ = hold;
  changed_.notify_all();
}

std::size_t fake_cuda::waiting_copies() {
  const std::lock_guard guard(mutex_);
  std::size_t count = 0;
  for (const auto& [stream, steps] : streams_) {
    for (const fake_step& each : steps) count += each.copy.size > 0 ? 1 : 0;
  }
  return count;
}

std::size_t fake_cuda::streams() {
  const std::lock_guard guard(mutex_);
  return streams_.size();
}

}  // namespace ucx::test
