#include "ucx/memory_region.hpp"

#include <mutex>
#include <utility>

#include "base/forked_child.hpp"
#include "base/handle_place.hpp"
#include "base/result.hpp"
#include "base/without_const.hpp"
#include "connection/endpoint_core.hpp"
#include "region/exposed/exposed_memory.hpp"
#include "region/exposed/notification_queue.hpp"
#include "region/exposed/notification_wait.hpp"
#include "ucx/error.hpp"
#include "worker/core_access.hpp"
#include "worker/failed_operation.hpp"
#include "worker/worker_core.hpp"

namespace ucx {
namespace {

using detail::failure;
using made_region = detail::result<std::shared_ptr<detail::exposed_region>>;

/// Returns the core of `parent`, or says that it has none.
detail::result<std::shared_ptr<detail::context_core>> open_core(const context& parent) {
  const std::shared_ptr<detail::context_core>& core = detail::core_access::core(parent);
  if (!core) {
    return failure{errc::closed, "exposing memory of a context that was moved from, or not made"};
  }
  if (core->is_inherited()) return failure{errc::forked_child, "exposing memory"};
  return core;
}

made_region expose(const context& parent, std::span<std::byte> bytes, access granted,
                   const std::optional<memory_place>& expected) {
  // An empty span has no address to borrow; a null one that is not empty is a mistake.
  if (bytes.data() == nullptr && !bytes.empty()) {
    return failure{errc::invalid_argument, "exposing memory at address zero"};
  }
  const auto core = open_core(parent);
  if (!core) return core.why();
  return detail::expose_memory(*core, bytes, granted, expected);
}

made_region make(const context& parent, std::size_t size, access granted,
                 const memory_place& place) {
  const auto core = open_core(parent);
  if (!core) return core.why();
  return detail::allocate_memory(*core, size, granted, place);
}

made_region take(const context& parent, ucp_mem* registered, access granted) {
  if (registered == nullptr) {
    return failure{errc::invalid_argument, "adopting registered memory: there is none"};
  }
  const auto core = open_core(parent);
  if (!core) return core.why();
  return detail::adopt_memory(*core, registered, granted);
}

}  // namespace

memory_region::memory_region(const context& parent, std::span<std::byte> bytes, access granted,
                             const std::optional<memory_place>& expected, std::error_code& ec)
    : core_(expose(parent, bytes, granted, expected).or_end(ec)) {
  detail::note_place(core_, this);
}

memory_region::memory_region(const context& parent, std::span<const std::byte> bytes,
                             std::error_code& ec)
    : memory_region(parent, detail::without_const(bytes), access::read, std::nullopt, ec) {}

memory_region memory_region::allocate(const context& parent, std::size_t size, access granted,
                                      const memory_place& place, std::error_code& ec) {
  memory_region made;
  made.core_ = make(parent, size, granted, place).or_end(ec);
  detail::note_place(made.core_, &made);
  return made;
}

memory_region memory_region::adopt(const context& parent, ucp_mem* registered, access granted,
                                   std::error_code& ec) {
  memory_region made;
  made.core_ = take(parent, registered, granted).or_end(ec);
  detail::note_place(made.core_, &made);
  return made;
}

memory_region::memory_region(memory_region&& other) noexcept : core_(std::move(other.core_)) {
  detail::note_place(core_, this);
}

memory_region& memory_region::operator=(memory_region&& other) noexcept {
  memory_region taken(std::move(other));
  std::swap(core_, taken.core_);
  detail::note_place(core_, this);
  detail::note_place(taken.core_, &taken);
  return *this;
}

memory_region::~memory_region() { close(); }

std::span<std::byte> memory_region::bytes() const noexcept {
  return core_ ? core_->where() : std::span<std::byte>();
}

std::size_t memory_region::size() const noexcept { return bytes().size(); }

access memory_region::granted() const noexcept { return core_ ? core_->granted() : access::read; }

memory_place memory_region::place() const noexcept {
  return core_ ? core_->whereabouts() : memory_place();
}

ucp_mem* memory_region::native_handle() const noexcept {
  return core_ ? core_->registration() : nullptr;
}

remote_descriptor memory_region::descriptor() const {
  return core_ ? core_->descriptor() : remote_descriptor();
}

bool memory_region::pass_to(const endpoint& peer) const {
  const std::shared_ptr<detail::endpoint_core>& to = detail::core_access::core(peer);
  if (!core_ || !to || core_->is_inherited() || to->is_inherited()) return false;
  const std::lock_guard guard(to->worker().lock());
  return to->files().pass(core_->id(), core_->granted());
}

void memory_region::on_notify(notification_handler handler, std::error_code& ec) {
  std::error_code outcome;
  if (core_ && core_->is_inherited()) {
    outcome = errc::forked_child;
  } else if (core_) {
    const auto kept = core_->notifications();  // a handler may destroy the region
    kept->set_handler(std::move(handler));
  } else {
    outcome = errc::closed;
  }
  detail::end_with(outcome, ec,
                   [] { return "handling the notifications of a region that is not open"; });
}

request memory_region::start_wait_notify(const worker& driven, notification& into,
                                         const io_options& options) {
  constexpr const char* what = "wait for a notification";
  const std::shared_ptr<detail::worker_core>& by = detail::core_access::core(driven);
  if (!core_ || !by) return detail::failed_request(errc::closed, what);
  if (core_->is_inherited() || by->is_inherited()) {
    return detail::failed_request(errc::forked_child, what);
  }
  const std::lock_guard guard(by->lock());
  auto& idle = by->pool_of<detail::notification_wait>();
  detail::notification_wait* const wait = idle.take();
  try {
    wait->begin(by, core_->notifications(), into, by->deadline_after(options.timeout));
  } catch (...) {
    idle.give_back(wait);
    throw;
  }
  return detail::core_access::make_request(wait);
}

notification memory_region::wait_notify(const worker& driven, const io_options& options,
                                        std::error_code& ec) {
  notification into;
  start_wait_notify(driven, into, options).wait(ec);
  return into;
}

std::optional<notification> memory_region::take_notification() {
  notification taken;
  if (!core_ || core_->is_inherited()) return std::nullopt;
  if (!core_->notifications()->take(taken)) return std::nullopt;
  return taken;
}

void memory_region::close() noexcept {
  if (!core_ || detail::leave_to_parent(core_)) return;
  const std::shared_ptr<detail::exposed_region> kept = core_;  // a handler may destroy the region
  kept->close();
  detail::let_go_at(this, core_, kept);
}

}  // namespace ucx
