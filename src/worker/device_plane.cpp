#include "worker/device_plane.hpp"

#include <sys/eventfd.h>

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include "base/blocked_signals.hpp"
#include "cuda/adapter_writes.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

/// How long the thread sleeps while it waits for streams of the program's, which wake nothing.
constexpr std::chrono::microseconds between_looks{200};
/// How long, while UCX moves bytes: not every transport rouses who sleeps.
constexpr std::chrono::milliseconds longest_plane_nap{1};

/// Returns whether UCX ends so what it does not begin, where the connection is alive.
bool is_refusal_of_ucx(ucs_status_t status) noexcept {
  return status == UCS_ERR_CANCELED || status == UCS_ERR_UNSUPPORTED ||
         status == UCS_ERR_UNREACHABLE;
}

ucp_request_param_t plane_told_by(ucp_send_nbx_callback_t callback, void* self) {
  ucp_request_param_t params = {};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.send = callback;
  params.user_data = self;
  return params;
}

}  // namespace

result<std::shared_ptr<device_plane>> device_plane::make(ucp_api& api,
                                                         const context_options& options,
                                                         const std::vector<std::string>& devices,
                                                         std::shared_ptr<logger> log) {
  owned_descriptor wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return failure{errc::too_many_files, "an event descriptor for device memory"};
  const std::shared_ptr<device_plane> made(new device_plane(api, std::move(log), std::move(wake)));
  if (auto ready = made->start_thread(options, devices); !ready) return std::move(ready).why();
  return made;
}

result<void> device_plane::start_thread(context_options options, std::vector<std::string> devices) {
  try {
    const blocked_signals meanwhile;
    std::thread([kept = shared_from_this(), end = end_, options = std::move(options),
                 devices = std::move(devices)]() mutable {
      {
        const std::lock_guard guard(end->mutex);
        end->serving = std::this_thread::get_id();
      }
      kept->set_up(options, devices) ? kept->serve() : kept->cancel_new();
      kept.reset();
      const std::lock_guard guard(end->mutex);
      end->over = true;
      end->changed.notify_all();
    }).detach();
  } catch (const std::system_error&) {
    return failure{errc::busy, "no thread to be had for transfers of device memory"};
  }
  return {};
}

/// Returns whether UCX has made its part.
bool device_plane::set_up(const context_options& options,
                          const std::vector<std::string>& devices) noexcept {
  std::optional<failure> why_not;
  try {
    auto made = plane_worker::make(api_, options, devices);
    if (made) {
      worker_ = *std::move(made);
    } else {
      why_not = std::move(made.why());
    }
    tell_of_worker(why_not);
  } catch (const std::bad_alloc&) {
    worker_.reset();
    why_not = failure{errc::no_memory};
  }
  const std::lock_guard guard(mutex_);
  why_not_made_ = std::move(why_not);
  is_settled_ = true;
  settled_.notify_all();
  return worker_ != nullptr;
}

void device_plane::tell_of_worker(const std::optional<failure>& why_not) const {
  if (!log_->writes(log_level::info)) return;
  log_->write(log_level::info,
              why_not ? "device memory does not go by RMA between hosts: " + why_not->text
                      : "device memory may go by RMA, by a second context of UCX's: " +
                            worker_->resources());
}

result<void> device_plane::wait_made() {
  std::unique_lock guard(mutex_);
  if (!settled_.wait_for(guard, longest_making, [this] { return is_settled_; })) {
    return failure{errc::not_supported, "UCX has not made a second context in time"};
  }
  if (why_not_made_) return *why_not_made_;
  return {};
}

std::optional<failure> device_plane::why_not_made() const {
  const std::lock_guard guard(mutex_);
  return why_not_made_;
}

void device_plane::close() noexcept {
  {
    const std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  look();
  std::unique_lock guard(end_->mutex);
  if (end_->serving == std::this_thread::get_id()) return;
  if (end_->changed.wait_for(guard, longest_close, [this] { return end_->over; })) return;
  log_->write(log_level::error,
              "the thread for RMA with device memory hangs in UCX or the CUDA driver: it is left");
}

std::shared_ptr<plane_key> device_plane::key(std::shared_ptr<plane_peer> peer,
                                             std::span<const std::byte> packed) {
  const std::shared_ptr<plane_key> made = connections_.key(std::move(peer), packed);
  const auto let_go = [kept = made, plane = weak_from_this()](plane_key*) mutable {
    kept.reset();
    if (const std::shared_ptr<device_plane> still = plane.lock()) still->look();
  };
  return std::shared_ptr<plane_key>(made.get(), let_go);
}

std::error_code device_plane::start(std::shared_ptr<plane_transfer> wanted) noexcept {
  if (is_inherited()) return errc::forked_child;
  {
    const std::lock_guard guard(mutex_);
    if (stopping_) return errc::closed;
    if (why_not_made_) return why_not_made_->code;
    try {
      new_.push_back(std::move(wanted));
    } catch (const std::bad_alloc&) {
      return errc::no_memory;
    }
  }
  look();
  return {};
}

void device_plane::look() noexcept {
  if (!is_inherited()) ::eventfd_write(wake_.get(), 1);
}

void device_plane::serve() noexcept {
  for (;;) {
    {
      const std::lock_guard guard(mutex_);
      if (stopping_) break;
    }
    try {
      if (!round()) sleep();
    } catch (const std::bad_alloc&) {
      api_.relax();
    }
  }
  end();
}

/// Returns whether anything happened.
bool device_plane::round() {
  bool busy = api_.worker_progress(worker_->handle()) != 0;
  busy = take_new() || busy;
  for (const std::shared_ptr<plane_transfer>& each : active_) busy = look_at(*each) || busy;
  std::erase_if(active_,
                [](const auto& each) { return each->stage_ == plane_transfer::stage::over; });
  busy = connections_.drop_lost() || busy;
  return connections_.drop_unheld() || busy;
}

bool device_plane::take_new() {
  const std::lock_guard guard(mutex_);
  if (new_.empty()) return false;
  active_.reserve(active_.size() + new_.size());
  std::move(new_.begin(), new_.end(), std::back_inserter(active_));
  new_.clear();
  return true;
}

bool device_plane::look_at(plane_transfer& each) noexcept {
  using stage = plane_transfer::stage;
  plane_peer& peer = *each.key->peer_;
  const bool given_up = !each.wanted_.load();
  switch (each.stage_) {
    case stage::waiting:
      if (given_up) return over(each, UCS_ERR_CANCELED), true;
      if (peer.lost() != UCS_OK) return over(each, peer.lost()), true;
      if (const cuda::result said = work_before(each); said != cuda::success) {
        if (said == cuda::not_ready) return false;
        each.lacks_work_ = true;
        return over(each, UCS_ERR_IO_ERROR), true;
      }
      return begin(each), true;
    case stage::moving:
    case stage::flushing: {
      const bool late = each.deadline <= api_.now();
      if ((!given_up && !late) || peer.lost() != UCS_OK) return false;
      peer.lose(late ? UCS_ERR_TIMED_OUT : UCS_ERR_CANCELED);
      return true;
    }
    case stage::moved:
      if (each.status_ == UCS_OK && each.into_peer) return flush(each), true;
      if (each.status_ == UCS_OK && each.context && !flush_adapter_writes(*each.context)) {
        each.status_ = UCS_ERR_UNSUPPORTED;
      }
      return over(each, each.status_), true;
    case stage::over:
      break;
  }
  return false;
}

/// Returns what the driver says of the program's work before it.
cuda::result device_plane::work_before(const plane_transfer& each) noexcept {
  if (!each.after) return cuda::success;
  const current_context current(*each.context);
  if (current.result() != cuda::success) return current.result();
  return each.context->driver().event_query(each.after->event());
}

void device_plane::begin(plane_transfer& each) noexcept {
  const ucs_status_t status = connections_.ready(*each.key, worker_->handle());
  if (status != UCS_OK) return over(each, status);
  std::optional<current_context> current;
  if (each.context) current.emplace(*each.context);
  if (current && current->result() != cuda::success) return over(each, UCS_ERR_IO_ERROR);
  ucp_request_param_t params = plane_told_by(&device_plane::on_moved, &each);
  params.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  params.memory_type = each.context ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_HOST;
  const ucp_ep_h endpoint = each.key->peer_->endpoint_;
  each.plane_ = this;
  each.stage_ = plane_transfer::stage::moving;
  const ucs_status_ptr_t started =
      each.into_peer ? api_.put_nbx(endpoint, each.local.data(), each.local.size(), each.address,
                                    each.key->handle_, &params)
                     : api_.get_nbx(endpoint, each.local.data(), each.local.size(), each.address,
                                    each.key->handle_, &params);
  each.taken_ = !UCS_PTR_IS_ERR(started);
  if (UCS_PTR_IS_PTR(started)) {
    ++each.key->peer_->in_ucx_;
    return;
  }
  each.status_ = UCS_PTR_RAW_STATUS(started);
  each.stage_ = plane_transfer::stage::moved;
}

/// UCX has the bytes of a write: they are in the peer's memory when its endpoint is flushed.
void device_plane::flush(plane_transfer& each) noexcept {
  if (each.key->peer_->lost() != UCS_OK) return over(each, each.key->peer_->lost());
  const ucp_request_param_t params = plane_told_by(&device_plane::on_moved, &each);
  each.stage_ = plane_transfer::stage::flushing;
  const ucs_status_ptr_t started = api_.ep_flush_nbx(each.key->peer_->endpoint_, &params);
  if (!UCS_PTR_IS_PTR(started)) return over(each, UCS_PTR_RAW_STATUS(started));
  ++each.key->peer_->in_ucx_;
}

void device_plane::on_moved(void* request, ucs_status_t status, void* self) {
  auto& each = *static_cast<plane_transfer*>(self);
  each.plane_->api_.request_free(request);
  --each.key->peer_->in_ucx_;
  using stage = plane_transfer::stage;
  if (each.stage_ == stage::flushing) return each.plane_->over(each, status);
  if (is_refusal_of_ucx(status) && each.key->peer().lost() == UCS_OK) each.taken_ = false;
  each.status_ = status;
  each.stage_ = stage::moved;
}

void device_plane::over(plane_transfer& each, ucs_status_t status) noexcept {
  // Bytes of a write that failed could come later: nothing else stops them.
  if (each.into_peer && each.taken_ && status != UCS_OK) each.key->peer_->lose(status);
  each.status_ = status;
  each.stage_ = plane_transfer::stage::over;
  each.ended();
  const std::lock_guard guard(each.mutex_);
  each.over_.store(true);
  each.changed_.notify_all();
}

void device_plane::sleep() noexcept {
  using stage = plane_transfer::stage;
  std::chrono::nanoseconds longest = std::chrono::hours(1);
  for (const std::shared_ptr<plane_transfer>& each : active_) {
    const std::chrono::nanoseconds most = each->stage_ == stage::waiting
                                              ? std::chrono::nanoseconds(between_looks)
                                              : longest_plane_nap;
    longest = std::min(longest, most);
  }
  if (api_.worker_arm(worker_->handle()) != UCS_OK) return;
  api_.wait_readable(worker_->event_fd(), wake_.get(), longest);
  eventfd_t woken = 0;
  ::eventfd_read(wake_.get(), &woken);
}

void device_plane::cancel_new() noexcept {
  std::vector<std::shared_ptr<plane_transfer>> never_begun;
  {
    const std::lock_guard guard(mutex_);
    never_begun.swap(new_);
  }
  for (const std::shared_ptr<plane_transfer>& each : never_begun) over(*each, UCS_ERR_CANCELED);
}

/// Ends all, and UCX's worker.
void device_plane::end() noexcept {
  connections_.lose();
  cancel_new();
  connections_.drop_lost();
  const clock::time_point until = api_.now() + longest_end;
  const auto is_over = [](const auto& each) { return each->stage_ == plane_transfer::stage::over; };
  for (;;) {
    if (api_.worker_progress(worker_->handle()) == 0) api_.relax();
    for (const std::shared_ptr<plane_transfer>& each : active_) look_at(*each);
    std::erase_if(active_, is_over);
    if ((active_.empty() && !connections_.is_closing()) || api_.now() >= until) break;
  }
  connections_.destroy_keys();
  worker_->destroy_worker();
  for (const std::shared_ptr<plane_transfer>& each : active_) {
    if (!is_over(each)) over(*each, UCS_ERR_CANCELED);
  }
  active_.clear();
}

}  // namespace ucx::detail
