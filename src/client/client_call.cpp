#include "client/client_call.hpp"

#include <mutex>
#include <new>

#include "base/deadline.hpp"
#include "base/if_there_is_memory.hpp"
#include "connection/endpoint_core.hpp"
#include "ucx/error.hpp"
#include "worker/core_access.hpp"
#include "worker/failed_operation.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// Keeps an operation whose last handle may go meanwhile.
class kept_operation {
 public:
  explicit kept_operation(operation& kept) noexcept : kept_(kept) { kept.retain(); }
  kept_operation(const kept_operation&) = delete;
  kept_operation& operator=(const kept_operation&) = delete;
  ~kept_operation() { kept_.release(); }

 private:
  operation& kept_;
};

}  // namespace

request client_call::start(client_questions& by, const io_options& options, std::string doing,
                           std::unique_ptr<conversation> what, request first) {
  if (by.worker().is_inherited()) return failed_request(errc::forked_child, std::move(doing));
  auto made = std::make_unique<client_call>(by, std::move(doing), std::move(what), options.timeout);
  worker_core& worker = by.worker();
  const std::lock_guard guard(worker.lock());
  client_call& started = *made.release();
  started.begin(std::move(first));
  return core_access::make_request(&started);
}

void client_call::begin(request first) {
  operation::start(by_.worker(), by_.connection().shared_from_this(),
                   by_.worker().deadline_after(timeout_));
  by_.enter(*this);
  by_.connection().liveness().expect_control();
  if (operation* const before = core_access::take(std::move(first))) return adopt(*before);
  say();
}

void client_call::set_blocking() noexcept {
  operation::set_blocking();
  set_members_blocking();
}

void client_call::say() noexcept {
  const kept_operation kept(*this);
  const std::shared_ptr<conversation> what = what_;
  by_.count_request();
  asked_ = {.answer_type = control_type::done, .by = this};
  try {
    if (const auto extra = what->extra_time()) {
      move_deadline(after(worker().deadline_after(timeout_), *extra));
    }
    what->ask(by_.session(), asked_);
  } catch (const std::bad_alloc&) {
    return give_up_for(make_error_code(errc::no_memory));
  }
  if (asked_.done) give_up_for(asked_.outcome);  // the session is over
}

void client_call::answered() noexcept {
  if (asked_.outcome) return give_up_for(asked_.outcome);
  by_.heard();
  if (!what_->takes_in_round()) return take();
  try {
    by_.take_in_round(*this);
  } catch (const std::bad_alloc&) {
    give_up_for(make_error_code(errc::no_memory));
  }
}

void client_call::take() noexcept {
  const kept_operation kept(*this);
  const std::shared_ptr<conversation> what = what_;
  try {
    auto taken = what->take(asked_.answer);
    if (!taken) return finish(std::move(taken.why()));
    if (*taken) return finish({});
    const clock::duration pause = what->pause();
    return pause > pause.zero() ? rest(pause) : say();
  } catch (const std::bad_alloc&) {
    give_up_for(make_error_code(errc::no_memory));
  }
}

void client_call::rest(clock::duration pause) {
  if (!resting_) resting_ = std::make_unique<alarm>(worker(), [this] { say(); });
  resting_->set(after(worker().api().now(), pause));
}

void client_call::member_ended(operation& member, std::error_code outcome) noexcept {
  if (is_over_) return;
  if (!outcome) return say();
  if (!member.was_given_up()) what_->not_begun(outcome);
  finish(
      failure{outcome, if_there_is_memory([&] { return member.describe(); }), member.ucx_status()});
}

void client_call::give_up_for(std::error_code why) noexcept {
  finish(failure{why, if_there_is_memory([this] { return doing_; })});
}

void client_call::finish(result<void> outcome) noexcept {
  if (std::exchange(is_over_, true)) return;
  by_.leave(*this, asked_);
  by_.connection().liveness().expected_control();
  if (resting_) resting_->call_off();
  std::error_code why;
  if (!outcome) {
    by_.count_failures(1);
    why = outcome.why().code;
    try {
      failure explained = what_->explain(std::move(outcome.why()), asked_.answer);
      why = explained.code;
      text_ = std::move(explained.text);
      ucx_status_ = explained.ucx_status;
    } catch (const std::bad_alloc&) {  // the code says it
    }
  }
  what_.reset();  // before its connection
  give_up_members(errc::canceled);
  complete(why);
}

}  // namespace ucx::detail
