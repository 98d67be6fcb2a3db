// What those who use a connection are told of it: its report, and the calls of their handlers.
#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include "connection/connection_observer.hpp"
#include "connection/endpoint_core.hpp"
#include "connection/message_sender.hpp"
#include "os/device_name.hpp"
#include "ucp/rdma.hpp"
#include "ucp/transport_group.hpp"
#include "worker/handler_scope.hpp"
#include "worker/process_watcher.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// The smaller of what two sides said, where both said something.
std::size_t smaller(std::uint64_t ours, std::uint64_t theirs) noexcept {
  return static_cast<std::size_t>(theirs == 0 ? ours : std::min(ours, theirs));
}

/// Returns what `all` makes, or `least` where there is no memory for it.
template <class All, class Told>
Told or_less(All all, Told least) noexcept {
  try {
    return all();
  } catch (const std::bad_alloc&) {
    return least;
  }
}

}  // namespace

void endpoint_core::log(log_level level, const char* what, const std::string& more) const {
  logger& log = worker_.context().log();
  if (!log.writes(level)) return;
  std::string line = "connection ";
  line.append(std::to_string(number_)).append(role_ == role::initiator ? " to " : " from ");
  line.append(peer_name()).append(": ").append(what).append(more);
  log.write(level, line);
}

connection_state endpoint_core::public_state() const noexcept {
  if (state_ == endpoint_state::closed) return connection_state::closed;
  if (taking_leave_) return connection_state::closing;
  if (state_ == endpoint_state::failed) return connection_state::failed;
  return state_ == endpoint_state::ready ? connection_state::active : connection_state::connecting;
}

socket_address endpoint_core::local() const {
  if (handle_ == nullptr || peer_.empty()) return {};
  ucp_ep_attr_t attributes = {};
  attributes.field_mask = UCP_EP_ATTR_FIELD_LOCAL_SOCKADDR;
  if (worker_.api().ep_query(handle_, &attributes) != UCS_OK) return {};
  std::error_code ignored;
  return socket_address::from_native(
      reinterpret_cast<const ::sockaddr*>(&attributes.local_sockaddr),
      sizeof attributes.local_sockaddr, ignored);
}

connection_report endpoint_core::report() {
  connection_report made;
  made.id = number_;
  made.peer = peer_;
  if (state_ != endpoint_state::ready) return made;
  const context_core& context = worker_.context();
  made.local = local();
  made.peer_name = theirs_.name;
  made.peer_info = theirs_.info;
  // A peer that says nothing of itself could do what this side can.
  const auto common =
      static_cast<unsigned>(context.features()) &
      (theirs_.features == feature::none ? ~0U : static_cast<unsigned>(theirs_.features));
  made.features = static_cast<feature>(common);
  made.transports = transports();
  made.segment = smaller(context.segment_size(), theirs_.segment);
  made.largest_eager = messages_->longest_at_once(detects_failure_, pieces_.write);
  made.largest_header = smaller(worker_.sender().longest_header(),
                                message_sender::header_within(theirs_.largest_header));
  made.zero_copy = any_is_rdma(made.transports);
  made.rma_is_real = includes(made.features, feature::rma) &&
                     (made.zero_copy || (!detects_failure_ && context.same_host_only()));
  made.watched = detects_failure_ || process_ != nullptr;
  return made;
}

connection_end endpoint_core::end() const {
  return {number_, peer_, error_, words_, messages_->unsent()};
}

void endpoint_core::arm(endpoint_options&& handlers) {
  const std::lock_guard guard(worker_.lock());
  options_.on_established = std::move(handlers.on_established);
  options_.on_closed = std::move(handlers.on_closed);
  queue_tell(event::established);
  if (state_ == endpoint_state::failed) queue_tell(event::closed);
}

/// The handler stays where disarm() finds it until it is called.
void endpoint_core::queue_tell(event what) {
  const bool heard = what == event::established ? static_cast<bool>(options_.on_established)
                     : what == event::refused   ? static_cast<bool>(options_.on_refused)
                                                : static_cast<bool>(options_.on_closed);
  if (!heard) return;
  worker_.queue_handler([weak = weak_from_this(), what] {
    if (const std::shared_ptr<endpoint_core> self = weak.lock()) self->tell(what);
  });
}

void endpoint_core::disarm() noexcept {
  endpoint_options unused;  // destroyed behind the lock
  std::shared_ptr<message_handlers> messages;
  {
    const std::lock_guard guard(worker_.lock());
    std::swap(unused.on_established, options_.on_established);
    std::swap(unused.on_refused, options_.on_refused);
    std::swap(unused.on_closed, options_.on_closed);
    messages_->swap_handlers(messages);  // what is still to be told holds them itself
  }
  if (worker_.in_handler()) return;
  worker_.wait_until(clock::time_point::max(), [this] { return telling_ == 0; });
}

/// Calls a user's handler, without the lock.
template <class Handler, class Told>
void endpoint_core::call(std::unique_lock<worker_lock>& guard, Handler& handler, const Told& told) {
  Handler taken = std::move(handler);
  if (!taken) return;
  const handler_scope telling(worker_, guard, telling_);
  Handler here = std::move(taken);  // destroyed without the lock, whatever it does
  here(told);
}

/// Where memory is short, in fewer words: else nobody would be told, and the process end.
void endpoint_core::tell(event what) {
  std::unique_lock guard(worker_.lock());
  switch (what) {
    case event::established:
      return call(guard, options_.on_established,
                  or_less([this] { return report(); }, connection_report{number_, peer_}));
    case event::refused: {
      const connection_refusal least{number_, peer_, error_};
      const auto all = [&] { return connection_refusal{number_, peer_, error_, words_}; };
      return call(guard, options_.on_refused, or_less(all, least));
    }
    case event::closed:
      return call(guard, options_.on_closed,
                  or_less([this] { return end(); }, connection_end{number_, peer_, error_}));
  }
}

void endpoint_core::tell_observer(event what) {
  if (observer_.expired()) return;
  worker_.defer([weak = weak_from_this(), observer = observer_, what] {
    const std::shared_ptr<endpoint_core> self = weak.lock();
    if (!self) return;
    --self->untold_;
    const std::shared_ptr<connection_observer> told = observer.lock();
    if (!told) return;
    if (what == event::established) return told->established(*self);
    told->ended(*self, what == event::closed);
  });
  ++untold_;
}

bool endpoint_core::is_observed_by(const connection_observer& observer) const noexcept {
  return observer_.lock().get() == &observer;
}

std::shared_ptr<endpoint_core> endpoint_core::keep(
    std::shared_ptr<endpoint_core> watching) noexcept {
  return std::exchange(watched_by_, std::move(watching));
}

void endpoint_core::watch(const std::shared_ptr<endpoint_core>& ward) {
  const std::lock_guard guard(worker_.lock());
  std::erase_if(wards_, [](const auto& each) { return each.expired(); });
  wards_.push_back(ward);
  if (state_ == endpoint_state::failed) fail_wards();
}

/// They may belong to other workers, whose locks are not taken under this one's.
void endpoint_core::fail_wards() {
  while (!wards_.empty()) {
    std::shared_ptr<endpoint_core> ward = wards_.back().lock();
    if (ward) {
      ward->worker().post_work([each = wards_.back(), why = error_, words = words_] {
        const std::shared_ptr<endpoint_core> self = each.lock();
        if (self) self->fail(why, "the connection that watches this one ended: " + words);
      });
      // Not here: it may be the last hold on the connection, and end it.
      worker_.queue_handler([kept = std::move(ward)] {});
    }
    wards_.pop_back();
  }
}

std::error_code endpoint_core::unacceptable_transport(std::string& words) {
  if (!terms_.require_rdma && terms_.transports.empty()) return {};
  const std::vector<std::string> lanes = transports();
  for (const std::string& lane : lanes) {
    if (terms_.require_rdma && !is_rdma(lane)) {
      words = "the connection goes over " + lane + ", and RDMA hardware was asked for";
      return errc::no_rdma;
    }
    const bool named =
        terms_.transports.empty() ||
        std::any_of(terms_.transports.begin(), terms_.transports.end(),
                    [&](const std::string& name) { return stands_for(name, transport_of(lane)); });
    if (!named) {
      words = "the connection goes over " + lane + ", which was not asked for";
      return errc::not_supported;
    }
  }
  if (!lanes.empty()) return {};
  words = "UCX does not tell the transports of the connection";
  return errc::not_supported;
}

}  // namespace ucx::detail
