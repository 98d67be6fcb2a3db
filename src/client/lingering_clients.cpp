#include "client/lingering_clients.hpp"

#include <algorithm>
#include <charconv>
#include <exception>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/blocked_signals.hpp"
#include "base/deadline.hpp"
#include "base/renamed_variable.hpp"
#include "client/client_core.hpp"

namespace ucx::detail {
namespace {

constexpr std::chrono::seconds usual{10};
constexpr std::size_t most = 16;

/// Longer than this is for ever.
constexpr double most_seconds = 1e9;

std::chrono::nanoseconds wanted(std::string& complaint) {
  const renamed_variable variable("UCXIO_SHARED_IDLE_TIMEOUT", "UCXIO_LINGER");
  const std::string_view text = variable.value;
  if (text.empty()) return usual;
  double seconds = -1;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (failed == std::errc() && end == text.data() + text.size() && seconds >= 0) {
    const std::chrono::duration<double> asked(std::min(seconds, most_seconds));
    return std::chrono::duration_cast<std::chrono::nanoseconds>(asked);
  }
  complaint = std::string(variable.name) + " is \"" + std::string(text) +
              "\", and may be a number of seconds, such as 10, 0.5 or 0";
  return usual;
}

}  // namespace

lingering_clients::lingering_clients() : longest_(wanted(complaint_)) {}

std::shared_ptr<client_core> lingering_clients::lend(const url& server,
                                                     std::shared_ptr<client_core> made) {
  client_core* const used = made.get();
  // Made now: where the last copy goes, nothing may fail.
  auto one = std::make_shared<all>();
  one->push_back({server, std::move(made)});
  std::list<lending> noted;
  noted.push_back({server, one->front().client, 0});
  {
    const std::lock_guard guard(mutex_);
    noted.front().number = one->front().number = ++lendings_;
    std::erase_if(lent_, [&](const lending& each) { return each.server == server; });
    lent_.splice(lent_.end(), noted);
  }
  return {used, [this, one](client_core*) { add(*one); }};
}

std::shared_ptr<client_core> lingering_clients::take(const url& server) noexcept {
  const std::lock_guard guard(mutex_);
  const auto found = std::find_if(kept_.begin(), kept_.end(),
                                  [&](const lingering& each) { return each.server == server; });
  if (found != kept_.end()) {
    std::shared_ptr<client_core> taken = std::move(found->client);
    kept_.erase(found);
    return taken;
  }
  const auto lent = std::find_if(lent_.begin(), lent_.end(),
                                 [&](const lending& each) { return each.server == server; });
  if (lent == lent_.end()) return nullptr;
  std::shared_ptr<client_core> taken = lent->client.lock();
  lent_.erase(lent);
  return taken;
}

/// Returns false for a client that was taken again before its last copy could leave it here.
/// REQUIRES: the mutex is held.
bool lingering_clients::returns(const lingering& one) noexcept {
  return std::erase_if(lent_, [&](const lending& each) { return each.number == one.number; }) > 0;
}

/// One that is lost, or was closed, is of no use to anybody.
void lingering_clients::add(all& one) noexcept {
  if (one.front().client->is_inherited()) return;
  const bool is_good = !one.front().client->status();
  all gone;
  {
    std::unique_lock guard(mutex_);
    if (!returns(one.front())) {
      guard.unlock();
      return one.clear();
    }
    one.front().since = clock::now();
    const bool stays = is_good && !ended_ && longest_ > longest_.zero() && start();
    all& where = stays ? kept_ : gone;
    where.splice(where.end(), one);
    if (kept_.size() > most) gone.splice(gone.end(), kept_, kept_.begin());
  }
  if (!is_good) return gone.clear();  // as it is: it may have more to say to its peer
  dismiss(gone);
}

/// Returns whether there is a thread. REQUIRES: the mutex is held.
bool lingering_clients::start() noexcept {
  if (doing_ != activity::nothing) return true;
  try {
    if (thread_.joinable()) thread_.join();  // it is over
    const blocked_signals meanwhile;
    thread_ = std::thread([this] { run(); });
  } catch (const std::exception&) {  // no thread, or no memory for one
    return false;
  }
  doing_ = activity::waiting;
  return true;
}

void lingering_clients::run() noexcept {
  std::unique_lock guard(mutex_);
  for (bool was_empty = false; !ended_;) {
    const clock::time_point now = clock::now();
    all gone;
    while (!kept_.empty() && after(kept_.front().since, longest_) <= now) {
      gone.splice(gone.end(), kept_, kept_.begin());
    }
    if (!gone.empty()) {
      doing_ = activity::dismissing;
      guard.unlock();
      dismiss(gone);
      guard.lock();
      doing_ = activity::waiting;
      changed_.notify_all();
      continue;
    }
    // A caller that opens and closes in turn takes out what has just come.
    if (kept_.empty() && std::exchange(was_empty, true)) break;
    if (!kept_.empty()) was_empty = false;
    const clock::time_point first = kept_.empty() ? now : kept_.front().since;
    changed_.wait_until(guard, after(first, longest_));
  }
  doing_ = activity::nothing;
}

/// Does not wait for peers, one of which may be stopped: their answers are not needed.
void lingering_clients::dismiss(all& gone) noexcept {
  for (lingering& each : gone) {
    if (each.client) each.client->leave_at_once();
  }
  gone.clear();
}

void lingering_clients::set_longest(std::chrono::nanoseconds longest) noexcept {
  all gone;
  {
    std::unique_lock guard(mutex_);
    longest_ = longest;
    changed_.notify_all();
    if (longest <= longest.zero()) {
      gone.swap(kept_);
      changed_.wait(guard, [this] { return doing_ != activity::dismissing; });
    }
  }
  dismiss(gone);
}

void lingering_clients::clear() noexcept {
  all gone;
  {
    std::unique_lock guard(mutex_);
    gone.swap(kept_);
    changed_.wait(guard, [this] { return doing_ != activity::dismissing; });
  }
  dismiss(gone);
}

void lingering_clients::end() noexcept {
  all gone;
  std::thread ending;
  {
    const std::lock_guard guard(mutex_);
    ended_ = true;
    gone.swap(kept_);
    ending.swap(thread_);
    changed_.notify_all();
  }
  if (ending.joinable()) ending.join();
  dismiss(gone);
}

}  // namespace ucx::detail
