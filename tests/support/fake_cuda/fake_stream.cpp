#include "fake_device.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "fake_results.hpp"

namespace ucx::test {
namespace {

/// Returns whether the stream is CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, or null for either.
bool is_default_stream(CUstream_st* stream) {
  const auto legacy = reinterpret_cast<CUstream_st*>(1);
  const auto per_thread = reinterpret_cast<CUstream_st*>(2);
  return stream == nullptr || stream == legacy || stream == per_thread;
}

}  // namespace

int fake_cuda::start(CUstream_st* stream, const fake_copy& wanted) {
  const std::lock_guard guard(mutex_);
  const auto found = streams_.find(stream);
  if (current() == nullptr) return invalid_context;
  if (found == streams_.end()) return invalid_handle;
  if (stream->context != current()) return invalid_handle;
  fake_copy by_device = wanted;
  by_device.device = stream->context->device;
  if (const int failure = check(by_device)) return failure;
  found->second.push_back({by_device});
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
  if (events_.count(event) == 0) return invalid_handle;
  // Nothing is enqueued on a default stream here, and it waits for no other stream.
  if (is_default_stream(stream)) {
    event->reached = ++event->recorded;
    changed_.notify_all();
    return success;
  }
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return invalid_handle;
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

int fake_cuda::look_at(CUevent_st* event) {
  const std::lock_guard guard(mutex_);
  if (current() == nullptr) return invalid_context;
  if (events_.count(event) == 0) return invalid_handle;
  const auto failure = plans_.find("cuEventSynchronize");
  const bool is_left = failure != plans_.end() && failure->second.times > 0;
  if (event->reached < event->recorded || is_left) return not_ready;
  return std::exchange(event->failed, success);
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

int fake_cuda::context_of(CUstream_st* stream, CUctx_st** context) {
  const std::lock_guard guard(mutex_);
  if (!initialised_) return not_initialized;
  if (!is_default_stream(stream) && streams_.count(stream) == 0) return invalid_handle;
  *context = is_default_stream(stream) ? current() : stream->context;
  return *context != nullptr ? success : invalid_context;
}

int fake_cuda::is_capturing(CUstream_st* stream, int* status) {
  const std::lock_guard guard(mutex_);
  if (streams_.count(stream) == 0) return invalid_handle;
  *status = stream->captures ? 1 : 0;
  return success;
}

int fake_cuda::await_word(CUstream_st* stream, std::uint64_t word, std::uint32_t value,
                          unsigned flags) {
  const std::lock_guard guard(mutex_);
  const auto found = streams_.find(stream);
  if (current() == nullptr) return invalid_context;
  if (found == streams_.end() || stream->context != current()) return invalid_handle;
  if (stream->captures) return capture_unsupported;
  const fake_memory* const memory = word < seen_from ? nullptr : holder(word - seen_from);
  if (memory == nullptr || memory->kind != fake_kind::pinned || memory->context != current() ||
      word % sizeof(std::uint32_t) != 0 || flags != 0) {
    return invalid_value;
  }
  static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));
  const std::uintptr_t address = word - seen_from;
  found->second.push_back(
      {.word = reinterpret_cast<const std::atomic<std::uint32_t>*>(address), .value = value});
  changed_.notify_all();
  return success;
}

bool fake_cuda::may_run(const CUstream_st& stream, const std::deque<fake_step>& steps) {
  if (stream.held || steps.empty()) return false;
  const fake_step& next = steps.front();
  if (next.word != nullptr) {
    const std::uint32_t beyond = next.word->load(std::memory_order_acquire) - next.value;
    return static_cast<std::int32_t>(beyond) >= 0;
  }
  return next.awaits == nullptr || next.awaits->reached >= next.count;
}

void fake_cuda::run_step(CUstream_st& stream, const fake_step& next) {
  if (next.awaits != nullptr || next.word != nullptr) return;
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
      // Nobody tells of a word that was written.
      const bool looks = std::any_of(streams_.begin(), streams_.end(), [](const auto& each) {
        return !each.second.empty() && each.second.front().word != nullptr;
      });
      if (looks) {
        changed_.wait_for(guard, std::chrono::microseconds(100));
      } else {
        changed_.wait(guard);
      }
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

void fake_cuda::capture_stream(CUstream_st* stream, bool captures) {
  const std::lock_guard guard(mutex_);
  stream->captures = captures;
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
