#include "worker/sourced_operation.hpp"

#include "base/deadline.hpp"
#include "base/pool.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

void sourced_operation::begin(std::shared_ptr<worker_core> of, sourced_words words,
                              completion_handler& on_stop, clock::time_point deadline) {
  const bool tells = static_cast<bool>(on_stop);
  if (tells && !on_stop_) on_stop_ = std::make_unique<completion_handler>();
  if (tells) of->expect_handler();
  if (tells) *on_stop_ = std::move(on_stop);
  tells_stop_ = tells;
  words_ = std::move(words);
  text_.clear();
  claimed_ = false;
  given_up_.reset();
  start(std::move(of), deadline);
  retain();
}

bool sourced_operation::claim() noexcept {
  if (done() || given_up_) return false;
  claimed_ = true;
  return true;
}

void sourced_operation::unclaim() noexcept {
  if (done() || !std::exchange(claimed_, false)) return;
  if (given_up_) complete(make_error_code(*given_up_));
}

bool sourced_operation::end(std::error_code outcome, std::string text,
                            completion_handler& unused) noexcept {
  if (done()) return false;
  if (on_stop_ && *on_stop_) {
    worker().forgo_handler();
    unused = std::move(*on_stop_);
  }
  if (outcome) text_ = std::move(text);
  complete(outcome);
  return true;
}

void sourced_operation::give_up(errc why) noexcept {
  if (done()) return;
  if (given_up_) {  // and claimed: its deadline is that of the claim
    if (why == errc::timed_out) complete(make_error_code(*given_up_));
    return;
  }
  given_up_ = why;
  if (on_stop_ && *on_stop_) {
    worker().queue_expected_handler(
        [told = std::move(on_stop_), why] { (*told)(make_error_code(why)); });
  }
  if (!claimed_) return complete(make_error_code(why));
  move_deadline(after(worker().api().now(), worker().options().heartbeat_timeout));
}

std::string sourced_operation::describe() const {
  if (done() && !text_.empty()) return text_;
  return words_.shared ? *words_.shared : words_.own;
}

void sourced_operation::recycle() noexcept {
  words_.shared.reset();
  worker().pool_of<sourced_operation>().give_back(this);
}

}  // namespace ucx::detail
