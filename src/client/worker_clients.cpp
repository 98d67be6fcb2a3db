#include "client/worker_clients.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "base/if_there_is_memory.hpp"
#include "base/intrusive_list.hpp"
#include "client/client_core.hpp"
#include "client/connecting_client.hpp"
#include "ucx/error.hpp"
#include "worker/core_access.hpp"
#include "worker/failed_operation.hpp"
#include "worker/operation_group.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

struct asker_tag {};

namespace {

/// Drops a client in a round, without the lock.
void let_go_in_round(worker_core& worker, std::shared_ptr<client_core> gone) noexcept {
  if (!gone) return;
  try {
    worker.queue_handler([gone = std::move(gone)] {});
  } catch (const std::bad_alloc&) {  // it is gone
  }
}

}  // namespace

/// A request that waits for the client of a place.
class worker_clients::asker final : public operation, public list_hook<asker_tag> {
 public:
  asker(place& at, const url& server, receiver then)
      : at_(at), doing_(to_string(server) + ": connecting"), then_(std::move(then)) {}

  void begin(std::shared_ptr<worker_core> over, clock::time_point deadline) noexcept {
    start(std::move(over), deadline);
  }
  /// REQUIRES: its place does not know it any more.
  void end(std::error_code outcome, const std::string& text, std::optional<int> ucx_status,
           const std::shared_ptr<client_core>& made) noexcept {
    if (!outcome) {
      then_(made);
    } else {
      text_ = if_there_is_memory([&] { return text; });
      ucx_status_ = ucx_status;
    }
    complete(outcome);
  }

  void give_up(errc why) noexcept override;
  void connection_failed(std::error_code) noexcept override {}  // it has none
  std::string describe() const override { return done() && !text_.empty() ? text_ : doing_; }
  std::optional<int> own_ucx_status() const noexcept override { return ucx_status_; }
  bool leaves_to_round() const noexcept override { return true; }  // users of a client

 protected:
  void recycle() noexcept override { delete this; }

 private:
  place& at_;
  const std::string doing_;
  std::string text_;  // of a failure
  std::optional<int> ucx_status_;
  receiver then_;
};

/// A server, the client of it, and who waits for that.
class worker_clients::place final : private operation_group {
 public:
  explicit place(url server) : server_(std::move(server)) {}

  bool is_idle() const noexcept { return made_.expired() && !has_members(); }
  bool connects() const noexcept { return has_members(); }
  /// Returns the client that somebody has, if it is not lost.
  std::shared_ptr<client_core> known(worker_core& worker) noexcept {
    std::shared_ptr<client_core> found = made_.lock();
    if (!found || !found->status()) return found;
    let_go_in_round(worker, std::move(found));
    return nullptr;
  }
  /// Begins an attempt. Returns a request that has failed, if it could not.
  request connect(const std::shared_ptr<worker_core>& over, const io_options& options) {
    request begun = connecting_client::start(
        over, server_, options,
        [this](std::shared_ptr<client_core> core) { came(std::move(core)); });
    if (!begun.done()) adopt(*core_access::take(std::move(begun)));
    return begun;
  }
  void add(asker& one) noexcept { askers_.push_back(one); }
  void leave(asker& one, errc why) noexcept {
    askers_.remove(one);
    if (askers_.empty()) give_up_members(why);
  }

 private:
  void came(std::shared_ptr<client_core> made) noexcept {
    made_ = made;
    now_ = std::move(made);
  }
  void member_ended(operation& attempt, std::error_code outcome) noexcept override {
    if (outcome == errc::timed_out && has_begun_again(attempt)) return;
    const std::string text = if_there_is_memory([&] { return attempt.describe(); });
    std::shared_ptr<client_core> made = std::move(now_);
    while (asker* const one = askers_.front()) {
      askers_.remove(*one);
      one->end(outcome, text, attempt.ucx_status(), made);
    }
    let_go_in_round(attempt.worker(), std::move(made));
  }

  /// Some have more time than the attempt had. Those that have none end by themselves.
  bool has_begun_again(operation& ended) noexcept {
    worker_core& worker = ended.worker();
    const clock::time_point now = worker.api().now();
    clock::time_point until = now;
    for (asker* each = askers_.front(); each != nullptr; each = askers_.next(*each)) {
      until = std::max(until, each->deadline());
    }
    if (ended.deadline() > now || until <= now) return false;
    try {
      static_cast<void>(connect(worker.shared_from_this(), {.timeout = until - now}));
      return has_members();
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  const url server_;
  std::weak_ptr<client_core> made_;
  std::shared_ptr<client_core> now_;  // until it is handed over
  intrusive_list<asker, asker_tag> askers_;
};

void worker_clients::asker::give_up(errc why) noexcept {
  if (done()) return;
  retain();
  at_.leave(*this, why);
  complete(make_error_code(why));
  release();
}

worker_clients::worker_clients() = default;
worker_clients::~worker_clients() = default;

worker_clients::place& worker_clients::place_of(const url& server) {
  std::erase_if(places_, [](const auto& each) { return each.second->is_idle(); });
  std::unique_ptr<place>& found = places_[server];
  if (!found) found = std::make_unique<place>(server);
  return *found;
}

request worker_clients::start(const std::shared_ptr<worker_core>& over, const url& server,
                              const io_options& options, receiver then) {
  if (over->is_inherited()) {
    return failed_request(errc::forked_child, to_string(server.server()) + ": connecting");
  }
  const url where = server.server();
  const std::lock_guard guard(over->lock());
  place& at = over->part<worker_clients>().place_of(where);
  if (auto known = at.known(*over)) {
    then(std::move(known));
    return {};
  }
  auto made = std::make_unique<asker>(at, where, std::move(then));
  if (!at.connects()) {
    request failed = at.connect(over, options);
    if (!at.connects()) return failed;
  }
  std::chrono::nanoseconds timeout = options.timeout;
  if (timeout <= timeout.zero()) timeout = over->options().connect_timeout;
  asker& started = *made.release();
  started.begin(over, over->deadline_after(timeout));
  at.add(started);
  return core_access::make_request(&started);
}

}  // namespace ucx::detail
