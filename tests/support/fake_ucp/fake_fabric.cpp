#include "support/fake_ucp/fake_fabric.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "support/fake_ucp/callback_scope.hpp"

namespace ucx::test::sim {
namespace {

// Lets go of the lock while the user's code runs, also when that throws.
class unlocked {
 public:
  explicit unlocked(lock_type& lock) : lock_(lock) { lock_.unlock(); }
  ~unlocked() { lock_.lock(); }
  unlocked(const unlocked&) = delete;
  unlocked& operator=(const unlocked&) = delete;

 private:
  lock_type& lock_;
};

// Simulated time starts here: far from zero, so that nobody takes zero for "never" unnoticed.
constexpr nanoseconds beginning = std::chrono::hours(1);

}  // namespace

std::uint64_t checksum(const std::byte* bytes, std::size_t size) noexcept {
  std::uint64_t sum = 0x9e3779b97f4a7c15U ^ size;
  while (size > 0) {
    std::uint64_t word = 0;
    const std::size_t length = std::min(size, sizeof(word));
    std::memcpy(&word, bytes, length);
    sum = (sum ^ word) * 0xff51afd7ed558ccdU;
    sum ^= sum >> 32U;
    bytes += length;
    size -= length;
  }
  return sum;
}

fabric::fabric(const link_options& options, std::uint64_t given_seed)
    : link(options),
      seed(given_seed),
      faults(given_seed),
      now_(clock::duration(beginning).count()) {}

clock::time_point fabric::now() const {
  if (link.time == time_mode::real) return clock::now();
  return clock::time_point(clock::duration(now_.load()));
}

void fabric::at(clock::time_point when, std::function<void()> what) {
  events_.emplace(when, std::move(what));
}

void fabric::run_due() {
  while (!events_.empty() && events_.begin()->first <= now()) {
    const auto what = std::move(events_.begin()->second);
    events_.erase(events_.begin());
    what();
  }
}

void fabric::pass(nanoseconds duration) {
  if (link.time == time_mode::real) return run_due();
  const auto target = now() + duration;
  while (!events_.empty() && events_.begin()->first <= target) {
    const auto when = std::max(events_.begin()->first, now());
    const auto what = std::move(events_.begin()->second);
    events_.erase(events_.begin());
    now_ = when.time_since_epoch().count();
    what();
  }
  now_ = target.time_since_epoch().count();
}

void fabric::pump(lock_type& lock, process_state* caller) {
  const bool was_running = caller != nullptr && std::exchange(caller->running, true);
  for (auto& process : processes) {
    if (process.running || process.stopped || process.killed || !process.pump) continue;
    const auto function = process.pump;
    process.running = true;
    ++pump_depth_;
    {
      const unlocked released(lock);
      function();
    }
    --pump_depth_;
    process.running = false;
  }
  if (caller != nullptr) caller->running = was_running;
}

void fabric::idle(lock_type& lock, process_state* caller, nanoseconds step) {
  pump(lock, caller);
  run_due();
  if (link.time == time_mode::real) return;
  // What was queued, or what a pump has just done, is for somebody who has to look first: time
  // passes when two rounds in a row find everybody waiting.
  const bool quiet = std::exchange(seen_activity_, activity_) == activity_;
  quiet_rounds_ = quiet ? quiet_rounds_ + 1 : 0;
  if (quiet_rounds_ < 2) return;
  auto target = now() + step;
  if (!events_.empty()) target = std::min(target, events_.begin()->first);
  pass(std::max(nanoseconds::zero(), nanoseconds(target - now())));
}

void fabric::notify(worker_object& worker) {
  if (!worker.armed) return;
  worker.armed = false;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(worker.event_fd, &one, sizeof(one));
}

bool fabric::is_ready(const worker_object& worker) const {
  return !worker.items.empty() || worker.wants_push;
}

void fabric::put(worker_object& worker, item what) {
  if (workers.find(&worker) == nullptr) return;
  worker.items.push_back(std::move(what));
  ++activity_;
  notify(worker);
}

item fabric::next_item(worker_object& worker) {
  auto& items = worker.items;
  std::size_t index = worker.process->faults.pick(items.size());
  if (index == 0) index = faults.pick(items.size());
  if (const auto* chosen = std::get_if<frame>(&items[index])) {
    // A connection keeps the order of what it carries.
    const auto first = std::find_if(items.begin(), items.end(), [&](const item& other) {
      const auto* earlier = std::get_if<frame>(&other);
      return earlier != nullptr && earlier->link == chosen->link && earlier->to == chosen->to;
    });
    index = static_cast<std::size_t>(first - items.begin());
  }
  const auto position = items.begin() + static_cast<std::ptrdiff_t>(index);
  item next = std::move(*position);
  items.erase(position);
  return next;
}

unsigned fabric::dispatch(worker_object& worker, lock_type& lock) {
  if (std::exchange(worker.wants_push, false)) {
    const auto links = worker.links;
    for (const auto& each : links) {
      for (int index = 0; index < 2; ++index) {
        if (each->sides[static_cast<std::size_t>(index)].worker == &worker) push(each, index, true);
      }
    }
  }
  unsigned done = 0;
  // Only what is there now: a callback that causes the next item must not keep us here.
  for (std::size_t left = worker.items.size(); left > 0 && !worker.items.empty(); --left) {
    item next = next_item(worker);
    ++done;
    ++activity_;
    std::visit([&](auto& what) { run(worker, std::move(what), lock); }, next);
  }
  return done;
}

void fabric::call_back_from(worker_object& worker, std::size_t first, lock_type& lock) {
  std::deque<item> fresh;
  while (worker.items.size() > first) {
    fresh.push_front(std::move(worker.items.back()));
    worker.items.pop_back();
  }
  for (auto& each : fresh) {
    if (auto* const done = std::get_if<completion>(&each)) {
      run(worker, std::move(*done), lock);
    } else {
      worker.items.push_back(std::move(each));
    }
  }
}

void fabric::run(worker_object&, completion what, lock_type& lock) {
  auto& request = *what.request;
  if (std::exchange(request.completed, true) || request.released || !request.has_callback) return;
  const unlocked released(lock);
  const callback_scope inside(true);
  if (request.on_received != nullptr) {
    request.on_received(&request, what.status, what.length, request.user_data);
  } else if (request.on_sent != nullptr) {
    request.on_sent(&request, what.status, request.user_data);
  }
}

void fabric::run(worker_object&, endpoint_error what, lock_type& lock) {
  auto* const endpoint = endpoints.find(what.endpoint);
  if (endpoint == nullptr || endpoint->on_error.cb == nullptr) return;
  const auto handler = endpoint->on_error;
  const unlocked released(lock);
  const callback_scope inside(true);
  handler.cb(handler.arg, reinterpret_cast<ucp_ep_h>(endpoint), what.status);
}

void fabric::kill(process_state& process) {
  if (std::exchange(process.killed, true)) return;
  workers.each([&](worker_object& worker) {
    if (worker.process != &process) return;
    const auto links = worker.links;
    for (const auto& each : links) {
      for (int index = 0; index < 2; ++index) {
        side& own = each->sides[static_cast<std::size_t>(index)];
        if (own.worker != &worker || own.closed) continue;
        const auto moves_memory = [](const auto& entry) {
          return entry.second->kind == call::get || entry.second->kind == call::put;
        };
        if (link.emulated_rma &&
            std::any_of(own.operations.begin(), own.operations.end(), moves_memory)) {
          violate(process.name +
                  " died in the middle of an emulated get or put: UCX aborts the owner");
        }
        announce_death(each, 1 - index, link.death_status, link.death_notice);
        own.closed = true;
        own.open = false;
        cancel_operations(each, index, UCS_ERR_CANCELED);
        if (own.endpoint == nullptr) continue;
        own.endpoint->failure = link.death_status;
        put(worker, endpoint_error{own.endpoint, link.death_status});
      }
    }
  });
}

void fabric::complete(request_ptr request, ucs_status_t status, std::size_t length) {
  if (request == nullptr) return;
  auto* const worker = request->worker;
  const auto delay = request->delay;
  completion done{std::move(request), status, length};
  if (delay <= nanoseconds::zero()) return put(*worker, std::move(done));
  after(delay, [this, worker, done] { put(*worker, done); });
}

operation_ptr fabric::begin(const connection_ptr& on, int index, call kind) {
  auto started = std::make_shared<operation>();
  started->id = next_id++;
  started->kind = kind;
  on->sides[static_cast<std::size_t>(index)].operations.emplace(started->id, started);
  return started;
}

void fabric::finish(const connection_ptr& on, int index, const operation_ptr& done,
                    ucs_status_t status, std::size_t length) {
  on->sides[static_cast<std::size_t>(index)].operations.erase(done->id);
  if (status == UCS_OK && done->header_size > 0 &&
      checksum(done->header, done->header_size) != done->header_sum) {
    violate("the header of a message changed before its request completed");
  }
  complete(std::move(done->request), status, length);
  settle_flushes(on, index);
}

void fabric::finish(const connection_ptr& on, int index, std::uint64_t id, ucs_status_t status) {
  const auto& operations = on->sides[static_cast<std::size_t>(index)].operations;
  if (const auto found = operations.find(id); found != operations.end()) {
    finish(on, index, operation_ptr(found->second), status);
  }
}

void fabric::settle_flushes(const connection_ptr& on, int index) {
  side& own = on->sides[static_cast<std::size_t>(index)];
  auto& operations = own.operations;
  while ((own.open || own.left) && !operations.empty()) {
    const operation_ptr first = operations.begin()->second;
    if (first->kind == call::ep_close && first->size == 0) {
      // Everything before the close is done: now the peer has to hear of it.
      first->size = 1;
      frame goodbye;
      goodbye.kind = frame_kind::closed;
      goodbye.operation = on->detects_failure ? first->id : 0;
      goodbye.status = UCS_ERR_CONNECTION_RESET;
      post(on, index, std::move(goodbye));
    }
    if (first->kind == call::ep_close && !on->detects_failure) {
      // Shared memory: nobody has to answer.
      operations.erase(operations.begin());
      own.closed = true;
      return complete(std::move(first->request), UCS_OK);
    }
    if (first->kind != call::ep_flush) return;
    operations.erase(operations.begin());
    complete(std::move(first->request), UCS_OK);
  }
}

}  // namespace ucx::test::sim
