#include "connection/close_operation.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/deadline.hpp"
#include "connection/endpoint_core.hpp"
#include "connection/flush_operation.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// How long a peer may take to say farewell: it has answered everything else already.
constexpr std::chrono::seconds farewell_limit{1};

}  // namespace

void close_operation::begin(worker_core& worker, std::shared_ptr<endpoint_core> endpoint,
                            close_mode mode, clock::time_point deadline) {
  kept_ = endpoint;
  mode_ = mode;
  stage_ = stage::answering;
  outcome_.clear();
  start(worker, std::move(endpoint), deadline);
  // Not here: a request has to exist before it can end.
  kept_->closing().look();
}

void close_operation::step() {
  if (done()) return;
  const bool over = mode_ == close_mode::abort || kept_->state() == endpoint_state::failed;
  if (stage_ == stage::answering) {
    // A peer that never answered owes nothing, and one that said goodbye was answered everything.
    if (over) return drop_connection();
    if (kept_->answers_pending()) return;
    if (kept_->state() != endpoint_state::ready || kept_->session().is_leaving())
      return drop_connection();
    return flush();
  }
  if (stage_ == stage::flushing) {
    if (!over && !flush_->done()) return;
    return part();
  }
  if (stage_ == stage::parting) {
    // A peer that does not answer has lost nothing: all that was asked of it is answered.
    if (over || kept_->session().heard_farewell()) return drop_connection();
    return;
  }
  if (kept_->ucx().has_let_go()) finish();
}

void close_operation::flush() {
  std::unique_ptr<flush_operation> flush(worker().pool_of<flush_operation>().take());
  flush->begin(worker(), kept_, nullptr, nullptr, true, deadline());
  flush_ = flush.release();
  reach(stage::flushing);
  if (flush_->done()) part();
}

void close_operation::part() {
  if (!flush_->done()) flush_->give_up(errc::canceled);
  outcome_ = flush_->error();
  flush_->let_go();
  std::exchange(flush_, nullptr)->release();
  if (outcome_ || kept_->state() != endpoint_state::ready || kept_->session().is_leaving() ||
      kept_->session().number() == 0) {
    return drop_connection();
  }
  try {
    kept_->session().say_bye({});
  } catch (const std::bad_alloc&) {  // the peer learns it from the end of the connection
    return drop_connection();
  }
  reach(stage::parting);
  move_deadline(std::min(deadline(), after(worker().api().now(), farewell_limit)));
}

void close_operation::drop_connection() {
  if (stage_ == stage::dropping) return;
  reach(stage::dropping);
  move_deadline(after(worker().api().now(), drop_limit));
  const std::error_code lost = kept_->closing().leave();
  if (!outcome_ && mode_ == close_mode::flush) outcome_ = lost;
  kept_->closing().look();
}

void close_operation::finish() noexcept {
  if (done()) return;
  if (flush_ != nullptr) {
    if (!flush_->done()) flush_->give_up(errc::canceled);
    flush_->let_go();
    std::exchange(flush_, nullptr)->release();
  }
  // The connection may go with the last hold on it, and the worker with that: at the very end.
  const std::shared_ptr<endpoint_core> kept = std::move(kept_);
  kept->closing().ended();
  complete(outcome_);
}

void close_operation::give_up(errc why) noexcept {
  if (done()) return;
  if (stage_ == stage::dropping) {
    if (why == errc::timed_out) finish();
    return;
  }
  if (stage_ != stage::parting || why != errc::timed_out) outcome_ = make_error_code(why);
  mode_ = close_mode::abort;
  if (stage_ == stage::flushing && !flush_->done()) flush_->give_up(why);
  kept_->closing().look();
  move_deadline(after(worker().api().now(), drop_limit));
}

void close_operation::connection_failed(std::error_code) noexcept { kept_->closing().look(); }

std::string close_operation::describe() const {
  return "closing the connection to " + endpoint()->peer_name();
}

void close_operation::recycle() noexcept { worker().pool_of<close_operation>().give_back(this); }

}  // namespace ucx::detail
