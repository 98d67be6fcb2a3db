#include "ucx/worker.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/deadline.hpp"
#include "base/forked_child.hpp"
#include "base/idle_rounds.hpp"
#include "base/result.hpp"
#include "connection/address_peers.hpp"
#include "connection/connection_table.hpp"
#include "connection/endpoint_core.hpp"
#include "message/assembled_parts.hpp"
#include "message/message_exchange.hpp"
#include "message/receive_starts.hpp"
#include "ucx/error.hpp"
#include "ucx/message.hpp"
#include "ucx/receive_target.hpp"
#include "worker/core_access.hpp"
#include "worker/failed_operation.hpp"
#include "worker/worker_core.hpp"

namespace ucx {
namespace {

using made_worker = detail::result<std::shared_ptr<detail::worker_core>>;

made_worker make(const context& parent, const worker_options& options) {
  const std::shared_ptr<detail::context_core>& core = detail::core_access::core(parent);
  if (core) return detail::worker_core::make(core, &detail::assemble_parts, options);
  return detail::failure{errc::closed,
                         "making a worker of a context that was moved from, or not made"};
}

made_worker adopted(const context& parent, ucp_worker* made, ownership owner,
                    const worker_options& options) {
  return detail::worker_core::adopt(detail::core_access::core(parent), made, owner,
                                    &detail::assemble_parts, options);
}

detail::result<worker_attributes> attributes_of(const std::shared_ptr<detail::worker_core>& core) {
  if (!core) return detail::failure{errc::closed, "asking for a worker's attributes"};
  auto told = core->attributes();
  if (!told || !core->context().is_of_ucx()) return told;  // over sockets there is no address
  const auto address = core->address();
  if (!address) return address.why();
  told->address_size = address->native().size();
  return told;
}

const char* why_not_run(std::error_code ec) {
  if (ec == errc::would_deadlock) return "running a worker inside its own handler";
  if (ec == errc::forked_child) return "running a worker";
  return "running a worker that a thread of its own drives";
}

/// See worker::on_message. `core` lives while it waits: a handler may destroy the worker.
detail::result<void> set_handler(detail::worker_core& core, std::uint64_t number,
                                 std::string_view owner, move_only_handler<message> handler) {
  if (core.is_inherited()) return detail::failure{errc::forked_child, "handling messages"};
  if (!core.context().has(feature::am)) {
    return detail::failure{errc::feature_disabled,
                           "handling messages on a context without feature::am"};
  }
  std::shared_ptr<move_only_handler<message>> replaced;  // goes behind the lock
  if (handler) replaced = std::make_shared<move_only_handler<message>>(std::move(handler));
  {
    const std::lock_guard guard(core.lock());
    detail::active_handlers& handlers = core.messages().handlers();
    if (!handlers.claim(number, owner)) {
      return detail::failure{errc::already_exists, "handling message " + std::to_string(number) +
                                                       " of \"" + std::string(owner) +
                                                       "\", whose upper half another owner has"};
    }
    handlers.exchange(number, replaced);
  }
  if (!replaced || core.in_handler()) return {};
  core.wait_until(detail::clock::time_point::max(),
                  [&] { return !core.messages().handlers().is_running(*replaced); });
  return {};
}

}  // namespace

worker::worker(const context& parent, const worker_options& options, std::error_code& ec)
    : core_(make(parent, options).or_end(ec)) {}

worker worker::adopt(const context& parent, ucp_worker* made, ownership owner,
                     const worker_options& options, std::error_code& ec) {
  return worker(adopted(parent, made, owner, options).or_end(ec));
}

worker::worker(worker&& other) noexcept = default;
worker& worker::operator=(worker&& other) noexcept {
  worker before(std::move(*this));
  core_ = std::move(other.core_);
  is_of_library_ = other.is_of_library_;
  return *this;
}

worker::~worker() {
  if (detail::leave_to_parent(core_)) return;
  if (!core_ || core_.use_count() == 1) return;
  const std::shared_ptr<detail::worker_core> kept = core_;
  // A round that runs now may keep what uses the worker, and would have its thread outlive us.
  kept->await_round();
  if (!is_of_library_) kept->handle_gone();
}

context worker::parent() const {
  return detail::core_access::make_context(core_->shared_context());
}

worker_address worker::address(std::error_code& ec) const {
  if (core_) return core_->address().or_end(ec);
  const detail::failure none{errc::closed, "asking for a worker's address"};
  return detail::result<worker_address>(none).or_end(ec);
}

bool worker::progress() { return core_->progress(); }
int worker::event_fd() const noexcept { return core_->ucx().event_fd(); }
bool worker::arm() { return core_->arm(); }
std::chrono::nanoseconds worker::next_timeout() const { return core_->until_next_deadline(); }
void worker::signal() noexcept { core_->signal(); }
void worker::post(move_only_handler<> function) {
  // The function may own this worker, and end it before post() returns.
  if (core_->is_inherited()) return;
  const std::shared_ptr<detail::worker_core> kept = core_;
  kept->post(std::move(function));
}
progress_mode worker::mode() const noexcept { return core_->options().progress; }

scheduled_call worker::call_after(std::chrono::nanoseconds delay, move_only_handler<> function) {
  return call_at(detail::after(core_->api().now(), delay), std::move(function));
}

scheduled_call worker::call_at(std::chrono::steady_clock::time_point when,
                               move_only_handler<> function) {
  return detail::core_access::make_scheduled_call(core_->calls().at(when, std::move(function)));
}

scheduled_call worker::call_every(std::chrono::nanoseconds period, move_only_handler<> function) {
  return detail::core_access::make_scheduled_call(
      core_->calls().every(period, std::move(function)));
}

scheduled_call worker::call_in_progress(progress_phase when, repetition how_often,
                                        move_only_handler<> function) {
  return detail::core_access::make_scheduled_call(
      core_->calls().in_progress(when, how_often == repetition::every_round, std::move(function)));
}

request worker::start_flush(const io_options& options) {
  if (core_->is_inherited()) {
    return detail::failed_request(errc::forked_child, "flush of a worker's connections");
  }
  detail::connection_table::connections over;  // let go behind the lock
  const std::lock_guard guard(core_->lock());
  over = core_->connections().made_here();
  return detail::core_access::make_request(core_->connections().start_flush(over, options));
}

void worker::flush(const io_options& options, std::error_code& ec) {
  start_flush(options).wait(ec);
}

void worker::fence() {
  if (core_->is_inherited()) return;
  detail::connection_table::connections over;  // let go behind the lock
  const std::lock_guard guard(core_->lock());
  over = core_->connections().made_here();
  for (const auto& each : over) each->operations().fence();
}

std::size_t worker::cancel_all(std::chrono::nanoseconds limit) {
  if (core_->is_inherited()) return 0;
  const std::shared_ptr<detail::worker_core> kept = core_;  // a handler may destroy the worker
  return kept->connections().cancel_all(nullptr, limit);
}

staging_statistics worker::staging() const noexcept {
  return core_ ? core_->staging() : staging_statistics();
}

worker_attributes worker::attributes(std::error_code& ec) const {
  return attributes_of(core_).or_end(ec);
}

ucp_worker* worker::native_handle() const noexcept {
  return core_ && core_->context().is_of_ucx() ? core_->handle() : nullptr;
}

std::size_t worker::connections() const noexcept {
  const std::lock_guard guard(core_->lock());
  return core_->connections().active();
}

void worker::run(std::stop_token stop, std::error_code& ec) {
  std::error_code outcome;
  if (core_->in_handler()) outcome = errc::would_deadlock;
  if (core_->driven_elsewhere()) outcome = errc::invalid_argument;
  if (core_->is_inherited()) outcome = errc::forked_child;
  detail::end_with(outcome, ec, [outcome] { return why_not_run(outcome); });
  if (outcome) return;
  const std::shared_ptr<detail::worker_core> kept = core_;  // a handler may destroy the worker
  const std::stop_callback wake(stop, [core = kept.get()] { core->signal(); });
  detail::idle_rounds idle;
  detail::progress_leader leader(*kept);
  while (!stop.stop_requested() && kept.use_count() > 1) {
    const std::uint32_t seen = kept->wakes();
    kept->progress_or_rest(idle, kept->api().now() + detail::longest_rest, leader, seen);
  }
}

// Messages of any peer.

request worker::start_receive(const tag_match& wanted, const receive_target& into,
                              const io_options& options) {
  return detail::start_tagged(*core_, nullptr, wanted, into, options);
}

message_info worker::receive(const tag_match& wanted, const receive_target& into,
                             const io_options& options, std::error_code& ec) {
  request receiving = start_receive(wanted, into, options);
  receiving.wait(ec);
  return receiving.received();
}

std::optional<message_info> worker::probe(const tag_match& wanted) const {
  if (core_->is_inherited()) return {};
  const std::lock_guard guard(core_->lock());
  const detail::arrived_message* const found = core_->messages().arrived().find(nullptr, wanted);
  if (found == nullptr) return {};
  return message_info{found->said.tag, found->said.length, found->said.memory};
}

std::optional<message> worker::take(const tag_match& wanted) {
  if (core_->is_inherited()) return {};
  const std::lock_guard guard(core_->lock());
  detail::arrived_message* const found = core_->messages().arrived().find(nullptr, wanted);
  if (found == nullptr) return {};
  core_->messages().take_by_hand(*found);
  return detail::core_access::make_message(core_, *found);
}

void worker::set_connection_events(connection_events events) {
  if (!core_ || core_->is_inherited()) return;
  auto exchanged = std::make_shared<connection_events>(std::move(events));  // goes behind the lock
  detail::address_peers& told = core_->connections().served().by_address();
  {
    const std::lock_guard guard(core_->lock());
    told.exchange(exchanged);
  }
  if (core_->in_handler()) return;
  core_->wait_until(detail::clock::time_point::max(), [&] { return !told.is_telling(); });
}

void worker::on_message(std::uint64_t number, move_only_handler<message> handler,
                        std::error_code& ec) {
  set_handler(*core_, number, {}, std::move(handler)).or_end(ec);
}

void worker::on_message(const message_name& name, move_only_handler<message> handler,
                        std::error_code& ec) {
  set_handler(*core_, name, name.owner(), std::move(handler)).or_end(ec);
}

}  // namespace ucx
