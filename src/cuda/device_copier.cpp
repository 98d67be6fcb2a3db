#include "cuda/device_copier.hpp"

#include <cstdint>
#include <new>

#include "base/activity_spin.hpp"
#include "cuda/staging_buffer.hpp"
#include "cuda/waited_copy.hpp"
#include "ucp/ucp_api.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

/// How long the thread looks whether a copy is over before it has the driver wake it.
constexpr std::chrono::microseconds longest_look{500};
/// How long, behind one, it looks for another before it sleeps.
constexpr std::chrono::microseconds longest_search{100};

}  // namespace

result<std::shared_ptr<device_copier>> device_copier::make(
    std::shared_ptr<const cuda_context> context) {
  const std::shared_ptr<device_copier> made(new device_copier(std::move(context)));
  made->events_.reserve(most_begun);
  made->begun_.reserve(most_begun);
  const cuda_driver& driver = made->context_->driver();
  const current_context current(*made->context_);
  const char* call = "cuCtxPushCurrent";
  cuda::result said = current.result();
  if (said == cuda::success) {
    call = "cuStreamCreate";
    said = driver.stream_create(&made->stream_, cuda::stream_non_blocking);
  }
  if (said == cuda::success) return made;
  made->stream_ = nullptr;
  return failure{cuda_error(said),
                 "preparing copies of a device's memory (" + cuda_words(driver, call, said) + ")"};
}

device_copier::~device_copier() { release(); }

/// REQUIRES: no other thread uses it any more, or comes to.
void device_copier::release() noexcept {
  if (std::exchange(released_, true)) return;
  const cuda_driver& driver = context_->driver();
  const current_context current(*context_);
  if (current.result() != cuda::success) return;  // they go with their context
  for (const cuda::event each : std::exchange(events_, {})) driver.event_destroy(each);
  if (stream_ != nullptr) driver.stream_destroy(std::exchange(stream_, nullptr));
}

bool device_copier::close(std::chrono::steady_clock::time_point until) noexcept {
  if (process_ != ::getpid()) return false;
  std::unique_lock guard(mutex_);
  closed_ = true;
  changed_.notify_all();
  // On that thread it is what the thread did last that ends the copier.
  if (thread_ == std::this_thread::get_id()) return false;
  const bool over =
      changed_.wait_until(guard, until, [this] { return thread_ == std::thread::id(); });
  if (over) release();
  return over;
}

std::error_code device_copier::start(std::shared_ptr<device_copy> wanted) noexcept {
  try {
    const std::lock_guard guard(mutex_);
    if (closed_) return errc::closed;
    waiting_.push_back(std::move(wanted));
    if (thread_ == std::thread::id()) start_thread();
    changed_.notify_all();
    return {};
  } catch (const std::bad_alloc&) {
    return errc::no_memory;
  } catch (const std::system_error&) {  // no thread to be had
    return errc::busy;
  }
}

/// REQUIRES: the mutex is held, and one copy waits, which is taken back where there is no thread.
void device_copier::start_thread() {
  try {
    std::thread started([kept = shared_from_this()] { kept->serve(); });
    thread_ = started.get_id();
    started.detach();
  } catch (...) {
    waiting_.pop_back();
    throw;
  }
}

/// Being woken, by the driver or for the next copy, may take longer than a copy.
void device_copier::serve() noexcept {
  const unsigned cores = std::thread::hardware_concurrency();
  activity_spin look_at_copies(real_ucp(), longest_look, cores);
  activity_spin look_for_more(real_ucp(), longest_search, cores);
  std::shared_ptr<device_copy> over;
  std::unique_lock guard(mutex_);
  for (;;) {
    if (!waiting_.empty() && (closed_ || begun_.size() < most_begun)) {
      std::shared_ptr<device_copy> next = std::move(waiting_.front());
      waiting_.pop_front();
      const bool refused = closed_;
      guard.unlock();
      if (refused) next->error = errc::closed;
      begun_copy made = refused ? begun_copy{std::move(next)} : begin(std::move(next));
      if (made.event != nullptr) {
        begun_.push_back(std::move(made));
        look_at_copies.begin_again();
      } else {
        made.copy->done();
        made.copy.reset();  // without the lock
      }
      guard.lock();
    } else if (over) {  // the device has something to do meanwhile
      guard.unlock();
      over->done();
      over.reset();
      guard.lock();
    } else if (!begun_.empty()) {
      guard.unlock();
      if (look_at(begun_.front()) || look_at_copies.time_to_sleep()) {
        finish(begun_.front());
        over = std::move(begun_.front().copy);
        begun_.erase(begun_.begin());
        look_at_copies.begin_again();
        look_for_more.begin_again();
      }
      guard.lock();
    } else if (closed_) {
      break;
    } else {
      guard.unlock();
      const bool sleeps = look_for_more.time_to_sleep();
      guard.lock();
      const auto changed = [this] { return closed_ || !waiting_.empty(); };
      if (sleeps && !changed_.wait_for(guard, longest_idle, changed)) break;
    }
  }
  thread_ = {};
  if (closed_) release();
  changed_.notify_all();
}

/// Returns it with an event where the driver has it now; without one it has ended.
device_copier::begun_copy device_copier::begin(std::shared_ptr<device_copy> wanted) noexcept {
  device_copy& copy = *wanted;
  if (!copy.wanted()) {
    copy.error = errc::canceled;
    return {std::move(wanted)};
  }
  if (copy.staging != nullptr) {
    copy.staging->pin(context_->device());
    copy.staging->account()->count(copy.host.size(), copy.staging->is_pinned());
  }
  const cuda_driver& driver = context_->driver();
  const current_context current(*context_);
  cuda::result result = current.result();
  if (result == cuda::success && (copy.error = copy.prepare())) return {std::move(wanted)};
  cuda::event event = nullptr;
  if (result == cuda::success && !events_.empty()) {
    event = events_.back();
    events_.pop_back();
  } else if (result == cuda::success) {
    result = driver.event_create(&event, cuda::event_disable_timing | cuda::event_blocking_sync);
    if (result != cuda::success) event = nullptr;
  }
  bool enqueued = false;
  if (result == cuda::success) result = enqueue(copy, event, enqueued);
  if (result == cuda::success) return {std::move(wanted), event};
  if (event != nullptr) events_.push_back(event);
  copy.error = error_of(result);
  // No event will tell when it is over: all that was enqueued has to be.
  if (enqueued) driver.stream_synchronize(stream_);
  return {std::move(wanted)};
}

cuda::result device_copier::enqueue(const device_copy& wanted, cuda::event event,
                                    bool& enqueued) noexcept {
  const cuda_driver& driver = context_->driver();
  cuda::result result = cuda::success;
  if (wanted.after) result = driver.stream_wait_event(stream_, wanted.after->event(), 0);
  if (result != cuda::success) return result;
  std::byte* const host = wanted.host.data();
  const std::size_t size = wanted.host.size();
  const cuda::address device = address_of(wanted.device);
  if (wanted.zeroes) {
    result = driver.fill(device, 0, size, stream_);
  } else if (wanted.within_devices) {
    const cuda::address other = address_of(host);
    result = wanted.into_device ? driver.copy_within_devices(device, other, size, stream_)
                                : driver.copy_within_devices(other, device, size, stream_);
  } else {
    result = wanted.into_device ? driver.copy_to_device(device, host, size, stream_)
                                : driver.copy_from_device(host, device, size, stream_);
  }
  if (result != cuda::success) return result;
  enqueued = true;
  return driver.event_record(event, stream_);
}

/// Returns whether the driver says how it ended.
bool device_copier::look_at(begun_copy& begun) noexcept {
  const current_context current(*context_);
  begun.result = current.result();
  if (begun.result == cuda::success) begun.result = context_->driver().event_query(begun.event);
  return begun.result != cuda::not_ready;
}

/// Returns when the driver has let go of it. One that fails to say so twice has: its context is
/// over.
void device_copier::finish(begun_copy& begun) noexcept {
  const cuda_driver& driver = context_->driver();
  const current_context current(*context_);
  cuda::result result = begun.result;
  if (result == cuda::not_ready) result = current.result();
  if (result == cuda::success && begun.result == cuda::not_ready) {
    result = driver.event_synchronize(begun.event);
  }
  events_.push_back(begun.event);
  if (result == cuda::success) return;
  begun.copy->error = error_of(result);
  if (current.result() == cuda::success) driver.stream_synchronize(stream_);
}

/// The arguments were right once: the memory is gone, or the device is.
std::error_code device_copier::error_of(cuda::result result) noexcept {
  failed_.store(true, std::memory_order_relaxed);
  return result == cuda::out_of_memory ? errc::no_memory : errc::io_error;
}

std::error_code device_copier::copy(std::shared_ptr<const void> keeps, void* device,
                                    std::span<std::byte> host, bool into_device,
                                    std::shared_ptr<const stream_mark> after,
                                    clock::time_point until) {
  const auto wanted = std::make_shared<waited_copy>(std::move(keeps));
  wanted->device = static_cast<std::byte*>(device);
  wanted->host = host;
  wanted->into_device = into_device;
  wanted->after = std::move(after);
  if (const std::error_code ec = start(wanted)) return ec;
  return wanted->wait(until);
}

std::error_code device_copier::clear(std::shared_ptr<const void> keeps, std::span<std::byte> bytes,
                                     clock::time_point until) {
  const auto wanted = std::make_shared<waited_copy>(std::move(keeps));
  wanted->device = bytes.data();
  wanted->host = bytes;
  wanted->zeroes = true;
  if (const std::error_code ec = start(wanted)) return ec;
  return wanted->wait(until);
}

cuda::address address_of(const void* pointer) noexcept {
  return static_cast<cuda::address>(reinterpret_cast<std::uintptr_t>(pointer));
}

}  // namespace ucx::detail
