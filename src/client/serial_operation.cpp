#include "client/serial_operation.hpp"

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

request serial_operation::start(endpoint_core& over, const io_options& options, std::string doing,
                                std::vector<step> steps, std::function<void()> at_end) {
  if (over.is_inherited()) return failed_request(errc::forked_child, std::move(doing));
  auto made =
      std::make_unique<serial_operation>(std::move(doing), std::move(steps), std::move(at_end));
  worker_core& worker = over.worker();
  std::vector<step> unused;  // goes without the lock
  const std::lock_guard guard(worker.lock());
  serial_operation& started = *made.release();
  started.operation::start(worker, over.shared_from_this(), worker.deadline_after(options.timeout));
  started.is_in_start_ = true;
  started.go_on();
  started.is_in_start_ = false;
  if (started.done()) unused.swap(started.steps_);
  return core_access::make_request(&started);
}

/// Begins steps until one is under way, or the last has ended.
void serial_operation::go_on() noexcept {
  retain();  // the last handle may go meanwhile
  while (!done() && !has_members()) {
    if (next_ == steps_.size()) {
      finish({});
      break;
    }
    result<request> begun = request();
    try {
      begun = steps_[next_].begin();
    } catch (const std::bad_alloc&) {
      begun = failure{errc::no_memory, if_there_is_memory([this] { return doing_; })};
    }
    if (!begun) {
      ended(begun.why());
      break;
    }
    operation* const under_way = core_access::take(*std::move(begun));
    if (under_way == nullptr) {
      ended({});
      continue;
    }
    is_starting_ = true;
    if (is_blocking()) under_way->set_blocking();
    adopt(*under_way);
    is_starting_ = false;
  }
  release();
}

/// Returns whether there may be another step.
bool serial_operation::ended(const result<void>& outcome) noexcept {
  const step& over = steps_[next_++];
  if (over.end) over.end(outcome);
  if (!outcome) finish(outcome);
  return !done();
}

void serial_operation::member_ended(operation& member, std::error_code outcome) noexcept {
  result<void> said;
  if (outcome) {
    const auto text = [&] { return member.was_given_up() ? doing_ : member.describe(); };
    said = failure{outcome, if_there_is_memory(text), member.ucx_status()};
  } else if (given_up_ && !is_last()) {
    said = failure{given_up_, if_there_is_memory([this] { return doing_; })};
  }
  if (ended(said) && !is_starting_) go_on();
}

void serial_operation::finish(const result<void>& outcome) noexcept {
  std::error_code why;
  if (!outcome) {
    why = outcome.why().code;
    text_ = if_there_is_memory([&] { return outcome.why().text; });
    ucx_status_ = outcome.why().ucx_status;
  }
  if (at_end_) std::exchange(at_end_, nullptr)();
  // The steps may keep the last user of a client, which goes without the lock, and in a round.
  if (!is_in_start_) {
    try {
      worker().queue_handler([goes = std::exchange(steps_, {})] {});
    } catch (const std::bad_alloc&) {  // they are gone
    }
  }
  complete(why);
}

void serial_operation::set_blocking() noexcept {
  operation::set_blocking();
  set_members_blocking();
}

void serial_operation::give_up(errc why) noexcept {
  if (done()) return;
  if (has_members() && steps_[next_].goes_on && steps_[next_].goes_on()) {
    set_members_blocking();  // canceling all leaves it alone
    forget_members();
    ended(failure{make_error_code(why), if_there_is_memory([this] { return doing_; })});
    return;
  }
  // Its step has to end first.
  move_deadline(after(worker().api().now(), worker().options().heartbeat_timeout));
  given_up_ = why;
  give_up_members(why);
}

}  // namespace ucx::detail
