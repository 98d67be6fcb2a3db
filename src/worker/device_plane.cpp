#include "worker/device_plane.hpp"

#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <new>
#include <utility>

#include "base/blocked_signals.hpp"
#include "cuda/adapter_writes.hpp"
#include "ucp/configuration.hpp"
#include "ucp/context_description.hpp"
#include "ucp/packed_key.hpp"
#include "ucp/rdma.hpp"
#include "ucp/resource_error.hpp"
#include "ucp/status.hpp"
#include "ucx/error.hpp"
#include "ucx/version.hpp"

namespace ucx::detail {
namespace {

constexpr version_number first_that_refuses{1, 21};
/// How long the thread sleeps while it waits for streams of the program's, which wake nothing.
constexpr std::chrono::microseconds between_looks{200};
/// How long, while UCX moves bytes: not every transport rouses who sleeps.
constexpr std::chrono::milliseconds longest_plane_nap{1};

bool names_cuda(const std::vector<std::string>& transports) {
  return std::any_of(transports.begin(), transports.end(),
                     [](const std::string& each) { return each.starts_with("cuda"); });
}

std::string with_commas(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& each : names) text.append(text.empty() ? "" : ", ").append(each);
  return text;
}

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
  version_number version;
  api.get_version(&version.major, &version.minor, &version.patch);
  if (version < first_that_refuses) {
    return failure{errc::not_supported, "UCX " + to_string(version) +
                                            " can not be told to refuse what it would emulate "
                                            "between hosts, as UCX can from 1.21 on"};
  }
  if (!api.may_lock(memory_locked_by_worker)) {
    return failure{errc::not_supported,
                   "a second worker with RDMA hardware: " + words_of_lack_to_lock()};
  }
  const std::shared_ptr<device_plane> made(new device_plane(api, std::move(log)));
  if (auto ready = made->init(options, devices); !ready) return std::move(ready).why();
  if (auto ready = made->make_worker(); !ready) return std::move(ready).why();
  if (made->log_->writes(log_level::info)) {
    made->log_->write(log_level::info,
                      "device memory may go by RMA, by a second context of UCX's: " +
                          with_commas(resources_of(api, made->context_)));
  }
  if (auto ready = made->start_thread(); !ready) return std::move(ready).why();
  return made;
}

result<void> device_plane::start_thread() {
  try {
    const blocked_signals meanwhile;
    std::thread([kept = shared_from_this(), end = end_]() mutable {
      {
        const std::lock_guard guard(end->mutex);
        end->serving = std::this_thread::get_id();
      }
      kept->serve();
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

result<void> device_plane::init(const context_options& options,
                                const std::vector<std::string>& devices) {
  context_options alike = options;
  if (!alike.transports.empty() && !names_cuda(alike.transports)) {
    alike.transports.emplace_back("cuda_copy");
  }
  const auto config = configuration::make(api_, alike, devices);
  if (!config) return config.why();
  auto* const changed = const_cast<ucp_config_t*>(config->handle());
  // Protocols of the old kind emulate, whatever the other key says.
  static constexpr std::array<std::pair<const char*, const char*>, 2> without_emulation{{
      {"PROTO_ENABLE", "y"},
      {"PROTO_EMULATION_ENABLE", "n"},
  }};
  for (const auto& [key, value] : without_emulation) {
    const ucs_status_t told = api_.config_modify(changed, key, value);
    if (told == UCS_OK) continue;
    return failure{errc::not_supported,
                   std::string("UCX does not take ") + key + "=" + value + " (" + words(told) + ")",
                   told};
  }
  ucp_params_t params = {};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
  params.features = UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP;
  params.mt_workers_shared = 1;
  const ucs_status_t made = api_.init(&params, config->handle(), &context_);
  if (made == UCS_OK) return check_memory();
  context_ = nullptr;
  return failure{resource_error(made), "a second context of UCX's (" + words(made) + ")", made};
}

result<void> device_plane::check_memory() const {
  ucp_context_attr_t asked = {};
  asked.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
  const ucs_status_t status = api_.context_query(context_, &asked);
  const bool known = (asked.memory_types & (std::uint64_t{1} << UCS_MEMORY_TYPE_CUDA)) != 0;
  if (status == UCS_OK && known) return {};
  return failure{errc::not_supported,
                 "UCX was built or set up without memory of CUDA devices (transport cuda_copy)"};
}

result<void> device_plane::make_worker() {
  ucp_worker_params_t params = {};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  ucs_status_t status = api_.worker_create(context_, &params, &worker_);
  const char* what = "a worker";
  if (status != UCS_OK) worker_ = nullptr;
  if (status == UCS_OK) {
    what = "a worker's event descriptor";
    status = api_.worker_get_efd(worker_, &event_fd_);
  }
  ucp_address_t* bytes = nullptr;
  std::size_t length = 0;
  if (status == UCS_OK) {
    what = "a worker's address";
    status = api_.worker_get_address(worker_, &bytes, &length);
  }
  if (status != UCS_OK) {
    return failure{resource_error(status),
                   std::string(what) + " for device memory (UCX: " + words(status) + ")", status};
  }
  const auto release = [this](ucp_address_t* told) { api_.worker_release_address(worker_, told); };
  const std::unique_ptr<ucp_address_t, decltype(release)> owned(bytes, release);
  const auto* const first = reinterpret_cast<const std::byte*>(bytes);
  address_.assign(first, first + length);
  wake_ = owned_descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (wake_) return {};
  return failure{errc::too_many_files, "an event descriptor for device memory"};
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

device_plane::~device_plane() {
  if (is_inherited()) return;
  if (worker_ != nullptr) api_.worker_destroy(worker_);
  if (context_ != nullptr) api_.cleanup(context_);
}

std::shared_ptr<plane_peer> device_plane::peer(std::span<const std::byte> address) {
  const std::lock_guard guard(mutex_);
  for (const std::shared_ptr<plane_peer>& each : peers_) {
    if (each->lost() == UCS_OK && each->has(address)) return each;
  }
  peers_.push_back(std::make_shared<plane_peer>(address));
  return peers_.back();
}

std::shared_ptr<plane_key> device_plane::key(std::shared_ptr<plane_peer> peer,
                                             std::span<const std::byte> packed) {
  const std::lock_guard guard(mutex_);
  auto made = std::make_shared<plane_key>(std::move(peer), packed);
  plane_key* const named = made.get();
  const auto let_go = [kept = made, plane = weak_from_this()](plane_key*) mutable {
    kept.reset();
    if (const std::shared_ptr<device_plane> still = plane.lock()) still->look();
  };
  std::shared_ptr<plane_key> held(named, let_go);
  keys_.push_back(std::move(made));
  return held;
}

std::error_code device_plane::start(std::shared_ptr<plane_transfer> wanted) noexcept {
  if (is_inherited()) return errc::forked_child;
  {
    const std::lock_guard guard(mutex_);
    if (stopping_) return errc::closed;
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
  bool busy = api_.worker_progress(worker_) != 0;
  busy = take_new() || busy;
  for (const std::shared_ptr<plane_transfer>& each : active_) busy = look_at(*each) || busy;
  std::erase_if(active_,
                [](const auto& each) { return each->stage_ == plane_transfer::stage::over; });
  busy = drop_lost() || busy;
  return drop_unheld() || busy;
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
      peer.lost_.store(late ? UCS_ERR_TIMED_OUT : UCS_ERR_CANCELED);
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

/// Connects, and unpacks the key, where that was not done yet.
ucs_status_t device_plane::ready(plane_key& key) noexcept {
  plane_peer& peer = *key.peer_;
  if (peer.endpoint_ == nullptr) {
    ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                        UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address = reinterpret_cast<const ucp_address_t*>(peer.address_.data());
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler.cb = &device_plane::on_lost;
    params.err_handler.arg = &peer;
    const ucs_status_t made = api_.ep_create(worker_, &params, &peer.endpoint_);
    if (made != UCS_OK) {
      peer.endpoint_ = nullptr;
      peer.lost_.store(made);
      return made;
    }
  }
  if (key.handle_ != nullptr) return UCS_OK;
  const padded_key packed(key.packed_);
  if (packed.data() == nullptr) return UCS_ERR_INVALID_PARAM;
  const ucs_status_t unpacked = api_.ep_rkey_unpack(peer.endpoint_, packed.data(), &key.handle_);
  if (unpacked != UCS_OK) key.handle_ = nullptr;
  return unpacked;
}

void device_plane::begin(plane_transfer& each) noexcept {
  if (const ucs_status_t status = ready(*each.key); status != UCS_OK) return over(each, status);
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
  if (UCS_PTR_IS_PTR(started)) return;
  each.status_ = UCS_PTR_RAW_STATUS(started);
  each.stage_ = plane_transfer::stage::moved;
}

/// UCX has the bytes of a write: they are in the peer's memory when its endpoint is flushed.
void device_plane::flush(plane_transfer& each) noexcept {
  if (each.key->peer_->lost() != UCS_OK) return over(each, each.key->peer_->lost());
  const ucp_request_param_t params = plane_told_by(&device_plane::on_moved, &each);
  each.stage_ = plane_transfer::stage::flushing;
  const ucs_status_ptr_t started = api_.ep_flush_nbx(each.key->peer_->endpoint_, &params);
  if (!UCS_PTR_IS_PTR(started)) over(each, UCS_PTR_RAW_STATUS(started));
}

void device_plane::on_moved(void* request, ucs_status_t status, void* self) {
  auto& each = *static_cast<plane_transfer*>(self);
  each.plane_->api_.request_free(request);
  using stage = plane_transfer::stage;
  if (each.stage_ == stage::flushing) return each.plane_->over(each, status);
  if (is_refusal_of_ucx(status) && each.key->peer().lost() == UCS_OK) each.taken_ = false;
  each.status_ = status;
  each.stage_ = stage::moved;
}

void device_plane::over(plane_transfer& each, ucs_status_t status) noexcept {
  // Bytes of a write that failed could come later: nothing else stops them.
  plane_peer& peer = *each.key->peer_;
  const bool may_come_later = each.into_peer && each.taken_ && status != UCS_OK;
  if (may_come_later && peer.lost() == UCS_OK) peer.lost_.store(status);
  each.status_ = status;
  each.stage_ = plane_transfer::stage::over;
  each.ended();
  const std::lock_guard guard(each.mutex_);
  each.over_.store(true);
  each.changed_.notify_all();
}

void device_plane::on_lost(void* self, ucp_ep_h, ucs_status_t status) {
  auto& peer = *static_cast<plane_peer*>(self);
  if (peer.lost() == UCS_OK) peer.lost_.store(status);
}

bool device_plane::drop_lost() noexcept {
  bool dropped = false;
  for (;;) {
    std::shared_ptr<plane_peer> lost;
    {
      const std::lock_guard guard(mutex_);
      for (const std::shared_ptr<plane_peer>& each : peers_) {
        if (each->lost() != UCS_OK && each->endpoint_ != nullptr) lost = each;
      }
    }
    if (!lost) break;
    drop(*lost);
    dropped = true;
  }
  return dropped;
}

/// Destroys what nothing holds but this, and keys of endpoints that are gone.
bool device_plane::drop_unheld() {
  bool dropped = false;
  for (;;) {
    std::shared_ptr<plane_key> key;
    std::shared_ptr<plane_peer> peer;
    {
      const std::lock_guard guard(mutex_);
      const auto unheld = [](const auto& each) { return each.use_count() == 1; };
      const auto first = std::find_if(keys_.begin(), keys_.end(), unheld);
      if (first != keys_.end()) {
        key = std::move(*first);
        keys_.erase(first);
      } else if (const auto left = std::find_if(peers_.begin(), peers_.end(), unheld);
                 left != peers_.end()) {
        peer = std::move(*left);
        peers_.erase(left);
      }
    }
    if (key && key->handle_ != nullptr) api_.rkey_destroy(std::exchange(key->handle_, nullptr));
    if (peer && peer->endpoint_ != nullptr) drop(*peer);
    if (!key && !peer) return dropped;
    dropped = true;
  }
}

/// Keys go before their endpoint, unless it has transfers, which use them.
void device_plane::drop(plane_peer& peer) noexcept {
  if (!has_transfers(peer)) destroy_keys(peer);
  ucp_request_param_t params = plane_told_by(&device_plane::on_closed, this);
  params.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
  params.flags = UCP_EP_CLOSE_FLAG_FORCE;
  const ucp_ep_h endpoint = std::exchange(peer.endpoint_, nullptr);
  ++closing_;
  if (!UCS_PTR_IS_PTR(api_.ep_close_nbx(endpoint, &params))) --closing_;
}

void device_plane::on_closed(void* request, ucs_status_t, void* self) {
  auto& plane = *static_cast<device_plane*>(self);
  plane.api_.request_free(request);
  --plane.closing_;
}

void device_plane::destroy_keys(const plane_peer& peer) noexcept {
  const std::lock_guard guard(mutex_);
  for (const std::shared_ptr<plane_key>& each : keys_) {
    if (each->peer_.get() != &peer || each->handle_ == nullptr) continue;
    api_.rkey_destroy(std::exchange(each->handle_, nullptr));
  }
}

bool device_plane::has_transfers(const plane_peer& peer) const noexcept {
  using stage = plane_transfer::stage;
  return std::any_of(active_.begin(), active_.end(), [&](const auto& each) {
    return each->key->peer_.get() == &peer &&
           (each->stage_ == stage::moving || each->stage_ == stage::flushing);
  });
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
  if (api_.worker_arm(worker_) != UCS_OK) return;
  api_.wait_readable(event_fd_, wake_.get(), longest);
  eventfd_t woken = 0;
  ::eventfd_read(wake_.get(), &woken);
}

/// Ends all, and UCX's worker.
void device_plane::end() noexcept {
  std::vector<std::shared_ptr<plane_transfer>> never_begun;
  {
    const std::lock_guard guard(mutex_);
    for (const std::shared_ptr<plane_peer>& each : peers_) each->lost_.store(UCS_ERR_CANCELED);
    never_begun.swap(new_);
  }
  for (const std::shared_ptr<plane_transfer>& each : never_begun) over(*each, UCS_ERR_CANCELED);
  never_begun.clear();
  drop_lost();
  const clock::time_point until = api_.now() + longest_end;
  const auto is_over = [](const auto& each) { return each->stage_ == plane_transfer::stage::over; };
  for (;;) {
    if (api_.worker_progress(worker_) == 0) api_.relax();
    for (const std::shared_ptr<plane_transfer>& each : active_) look_at(*each);
    std::erase_if(active_, is_over);
    if ((active_.empty() && closing_ == 0) || api_.now() >= until) break;
  }
  for (const std::shared_ptr<plane_peer>& each : peers_) destroy_keys(*each);
  api_.worker_destroy(std::exchange(worker_, nullptr));
  for (const std::shared_ptr<plane_transfer>& each : active_) {
    if (!is_over(each)) over(*each, UCS_ERR_CANCELED);
  }
  active_.clear();
}

}  // namespace ucx::detail
