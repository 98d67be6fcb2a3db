#include "connection/connection_table.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "base/deadline.hpp"
#include "connection/address_peers.hpp"
#include "connection/connection_observer.hpp"
#include "connection/control_queue.hpp"
#include "connection/endpoint_core.hpp"
#include "connection/flush_operation.hpp"
#include "connection/frame_sender.hpp"
#include "connection/joint_operation.hpp"
#include "wire/introduction.hpp"
#include "wire/protocol.hpp"
#include "wire/wire.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

connection_table::connection_table(worker_core& worker, maker_of_messages messages)
    : worker_(worker),
      make_messages_(messages),
      by_address_(std::make_shared<address_peers>(worker)),
      turns_(std::make_unique<control_queue>(worker)),
      deferred_(worker) {}

connection_table::~connection_table() = default;

void connection_table::make_room() {
  const std::size_t needed = all_.size() + 1;
  for (auto* const list : {&ticking_, &all_}) {  // a tick allocates nothing, either
    if (list->capacity() < needed) list->reserve(std::max(2 * list->capacity(), needed));
  }
}

void connection_table::remove(endpoint_core& gone) noexcept {
  turns_->drop(&gone);
  std::erase(all_, &gone);
  std::replace(ticking_.begin(), ticking_.end(), &gone, static_cast<endpoint_core*>(nullptr));
  unname(gone);
}

void connection_table::name(endpoint_core& named) {
  last_found_ = nullptr;
  by_session_[named.session().number()] = &named;
}

void connection_table::unname(endpoint_core& named) noexcept {
  last_found_ = nullptr;
  const auto found = by_session_.find(named.session().number());
  if (found != by_session_.end() && found->second == &named) by_session_.erase(found);
}

endpoint_core* connection_table::find(std::uint64_t session) const noexcept {
  if (last_found_ != nullptr && last_session_ == session) return last_found_;
  const auto found = by_session_.find(session);
  last_session_ = session;
  return last_found_ = found == by_session_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<endpoint_core>> connection_table::made_here() const {
  std::vector<std::shared_ptr<endpoint_core>> held;
  for (endpoint_core* each : all_) {
    auto kept = each->weak_from_this().lock();
    if (kept && std::find(served_.begin(), served_.end(), kept) == served_.end()) {
      held.push_back(std::move(kept));
    }
  }
  return held;
}

std::shared_ptr<endpoint_core> connection_table::any_followed_by(
    const connection_observer& observer) const noexcept {
  for (endpoint_core* const each : all_) {
    if (each->state() == endpoint_state::closed || !each->observers().is_observed_by(observer))
      continue;
    if (auto kept = each->weak_from_this().lock()) return kept;
  }
  return nullptr;
}

std::vector<std::shared_ptr<endpoint_core>> connection_table::followed_by(
    const connection_observer& observer) const {
  std::vector<std::shared_ptr<endpoint_core>> found;
  for (endpoint_core* const each : all_) {
    if (!each->observers().is_observed_by(observer)) continue;
    if (auto kept = each->weak_from_this().lock()) found.push_back(std::move(kept));
  }
  return found;
}

bool connection_table::has_connection_to(const socket_address& peer) const noexcept {
  return std::any_of(all_.begin(), all_.end(), [&](const endpoint_core* each) {
    return each->side() == endpoint_core::role::initiator && each->peer() == peer &&
           (each->state() == endpoint_state::connecting || each->state() == endpoint_state::ready);
  });
}

bool connection_table::has_connection_to(std::uint64_t identity,
                                         const endpoint_core& but) const noexcept {
  if (identity == 0) return false;
  const std::uint64_t ours = worker_.identity();
  // A connection of a worker to itself has its other end here. Of two that cross, each of which was
  // welcomed before the other was known, the one that the smaller number began is kept.
  const bool crossing_counts =
      identity != ours && (but.side() == endpoint_core::role::acceptor || ours > identity);
  return std::any_of(all_.begin(), all_.end(), [&](const endpoint_core* each) {
    return each != &but && each->state() == endpoint_state::ready &&
           !each->session().is_leaving() && each->session().theirs().identity == identity &&
           (each->side() == but.side() || crossing_counts);
  });
}

std::size_t connection_table::active(const connection_observer* observer) const noexcept {
  const auto counts = [observer](const endpoint_core* each) {
    return each->state() == endpoint_state::ready && !each->session().is_leaving() &&
           (observer == nullptr || each->observers().is_observed_by(*observer));
  };
  return static_cast<std::size_t>(std::count_if(all_.begin(), all_.end(), counts));
}

void connection_table::hello(const frame& said, std::span<const std::byte> payload,
                             ucp_ep_h reply_endpoint) {
  if (payload.size() > longest_worker_address + envelope::overhead + introduction::longest) return;
  worker_.defer([this, said, copy = std::vector<std::byte>(payload.begin(), payload.end()),
                 reply_endpoint] { answer_hello(said, copy, reply_endpoint); });
}

void connection_table::answer_hello(const frame& said, const std::vector<std::byte>& payload,
                                    ucp_ep_h reply_endpoint) {
  if (said.session == 0 || closed_) return;
  const greeting read = read_greeting(payload);
  std::optional<introduction> theirs = decode_introduction(read.introduction);
  if (!read.intact || !theirs) return;
  theirs->process = decode_process_identity(read.process);
  endpoint_core* const known = find(said.session);
  // A worker that connects to itself: its own endpoint is the one to answer by.
  const bool ours = known != nullptr && known->side() == endpoint_core::role::initiator;
  // Somebody else's already: who came later has to draw another.
  const bool taken = known != nullptr && !ours;
  if (taken && known->session().came_by(read.address, reply_endpoint)) return;  // said twice
  endpoint_core* peer = known;
  if (!ours)
    peer = read.address.empty() ? find_nameless(reply_endpoint) : connect_back(read.address);
  if (peer == nullptr) return;
  const std::shared_ptr<endpoint_core> kept = peer->shared_from_this();
  if (taken) {
    frame answer;
    answer.code = opcode::welcome;
    answer.session = said.session;
    answer.status = error_status(make_error_code(errc::busy));
    peer->reply(answer);
    // One that we connected back to does so again; one that a listener accepted goes on.
    if (!read.address.empty()) peer->session().peer_said_bye({});
    return;
  }
  if (peer->session().number() == 0) peer->session().take_number(said.session);
  endpoint_session& session = peer->session();
  const result<void> wanted = said.version == protocol_version_number
                                  ? session.check(*theirs)
                                  : failure{errc::version_mismatch};
  if (!wanted) return session.refuse(wanted.why());
  session.welcome(std::move(*theirs), said.length);
}

endpoint_core* connection_table::find_nameless(ucp_ep_h handle) const noexcept {
  const auto found = std::find_if(all_.begin(), all_.end(), [&](const endpoint_core* e) {
    return e->handle() == handle && e->session().number() == 0;
  });
  return found == all_.end() ? nullptr : *found;
}

endpoint_core* connection_table::connect_back(std::span<const std::byte> framed) {
  // Of whatever version: a peer of another one has to be told so, and reached for that.
  const std::span<const std::byte> address = envelope(framed, worker_address_letters).any_body();
  if (address.empty() || address.size() > longest_worker_address) return nullptr;
  std::error_code ec;
  ucp_ep_params_t params = {};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  std::shared_ptr<endpoint_core> made = endpoint_core::make(
      worker_, nullptr, params, endpoint_core::role::acceptor, endpoint_options(), ec);
  if (!made) return nullptr;
  made->session().set_address({framed.begin(), framed.end()});
  made->observers().set_observer(by_address_);
  serve(made);
  return made.get();
}

void connection_table::serve(std::shared_ptr<endpoint_core> peer) {
  served_.push_back(std::move(peer));
}

void connection_table::reap() {
  for (std::size_t i = 0; i < served_.size();) {
    const endpoint_state state = served_[i]->state();
    const bool over = state == endpoint_state::failed || state == endpoint_state::closed;
    if (over && served_[i]->ucx().transfers() == 0 && served_[i]->answers() == 0 &&
        !served_[i]->observers().is_untold()) {
      const std::shared_ptr<endpoint_core> gone = std::move(served_[i]);
      served_[i] = std::move(served_.back());
      served_.pop_back();
    } else {
      ++i;
    }
  }
}

clock::time_point connection_table::tick(clock::time_point now) {
  clock::time_point next = clock::time_point::max();
  // A copy: one that fails takes itself out of the table, and may take others with it.
  ticking_.assign(all_.begin(), all_.end());
  for (std::size_t i = 0; i < ticking_.size(); ++i) {
    if (ticking_[i] == nullptr) continue;
    try {
      next = std::min(next, ticking_[i]->tick(now));
    } catch (const std::bad_alloc&) {  // the next tick looks again
      next = now;
    }
  }
  ticking_.clear();
  return next;
}

void connection_table::close() noexcept {
  closed_ = true;
  // Taken out first: closing makes progress, which looks at the table.
  const std::vector<std::shared_ptr<endpoint_core>> gone = std::exchange(served_, {});
  std::error_code ignored;
  for (const std::shared_ptr<endpoint_core>& peer : gone)
    peer->closing().close(close_mode::abort, ignored);
}

operation* connection_table::start_flush(const connections& over, const io_options& options) {
  const clock::time_point deadline = worker_.deadline_after(options.timeout);
  joint_operation* const all = worker_.pool_of<joint_operation>().take();
  all->begin(worker_.shared_from_this(), deadline, "flush of every connection");
  try {
    for (const std::shared_ptr<endpoint_core>& each : over) {
      if (each->status()) continue;  // told already
      std::unique_ptr<flush_operation> flush(worker_.pool_of<flush_operation>().take());
      flush->begin(worker_, each, nullptr, nullptr, true, deadline);
      all->adopt(*flush.release());
    }
  } catch (const std::bad_alloc&) {  // those that were started are waited for
    all->note_failure(make_error_code(errc::no_memory), {});
  }
  all->all_started();
  return all;
}

std::size_t connection_table::cancel_all(endpoint_core* connection,
                                         std::chrono::nanoseconds limit) {
  connections over;  // let go behind the lock
  {
    const std::lock_guard guard(worker_.lock());
    if (connection != nullptr) {
      connection->cancel_operations();
    } else {
      over = made_here();
      for (const std::shared_ptr<endpoint_core>& each : over) each->cancel_operations();
      worker_.outstanding().cancel(nullptr);
    }
  }
  worker_.settle();
  const auto left = [&] { return worker_.outstanding().count(connection); };
  if (limit > limit.zero() && !worker_.in_handler()) {
    worker_.wait_until(after(worker_.api().now(), limit), [&] { return left() == 0; });
  }
  const std::lock_guard guard(worker_.lock());
  return left();
}

}  // namespace ucx::detail
