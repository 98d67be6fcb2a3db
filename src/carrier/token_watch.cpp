#include "carrier/token_watch.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/logger.hpp"

namespace ucx::detail {

struct token_watch::state {
  using guard = std::unique_lock<std::mutex>;

  explicit state(const tls_settings& of, std::shared_ptr<const tls_keys> first)
      : settings(of), keys(std::move(first)), seen(keys->version_read()) {}

  void look(guard& held) noexcept;
  void write(guard& held, token_addition& added) noexcept;
  void take(guard& held, result<std::shared_ptr<const tls_keys>> made);
  void log(guard& held, log_level level, const std::string& line);
  void run() noexcept;

  const tls_settings settings;
  std::mutex mutex;
  std::condition_variable changed;
  std::shared_ptr<const tls_keys> keys;
  std::optional<tls_keys::version> seen;  // of the file, the last time
  std::atomic<std::uint64_t> version{1};
  std::vector<token_observer*> observers;
  std::vector<std::shared_ptr<token_addition>> additions;  // the oldest first
  std::uint64_t wanted = 0;                                // looks that were asked for
  std::uint64_t done = 0;                                  // of those
  std::optional<std::chrono::steady_clock::time_point> looking_since;
  bool has_begun = false;
  bool is_logging = false;
  bool stops = false;
  bool is_left_behind = false;
  bool has_ended = false;
};

/// The log may not be there any more for a thread that was left behind.
void token_watch::state::log(guard& held, log_level level, const std::string& line) {
  if (is_left_behind) return;
  is_logging = true;
  held.unlock();
  settings.log->write(level, line);
  held.lock();
  is_logging = false;
  changed.notify_all();
}

void token_watch::state::take(guard& held, result<std::shared_ptr<const tls_keys>> made) {
  if (!made) return log(held, log_level::error, "the tokens stay as they were: " + made.why().text);
  const bool lets_in = (*made)->accepts_any();
  keys = *std::move(made);
  version.fetch_add(1, std::memory_order_release);
  for (token_observer* each : observers) each->tokens_changed();
  log(held, lets_in ? log_level::info : log_level::warning,
      lets_in ? "the file of tokens was read again"
              : "the file of tokens has none any more: no peer is let in by one");
}

/// Without the lock while the system is asked.
void token_watch::state::look(guard& held) noexcept {
  const std::shared_ptr<const tls_keys> before = keys;
  looking_since = std::chrono::steady_clock::now();
  held.unlock();
  try {
    const auto now = before->version_now();
    held.lock();
    const bool is_other = now != seen;
    if (is_other) {
      held.unlock();
      auto made = tls_keys::read(settings);
      held.lock();
      seen = now;
      take(held, std::move(made));
    }
  } catch (const std::bad_alloc&) {
    if (!held.owns_lock()) held.lock();
    seen.reset();  // the next look tries again
  }
  looking_since.reset();
}

/// Without the lock while the file is written. Callers of `token_watch::look` wait for no such
/// file.
void token_watch::state::write(guard& held, token_addition& added) noexcept {
  looking_since = std::chrono::steady_clock::time_point();
  const std::filesystem::path file = keys->file();
  bool is_kept = false;
  held.unlock();
  try {
    const auto secret = added.secret_.bytes().first<token_size>();
    const auto kept = detail::add_token(file, {true, added.name_}, secret);
    is_kept = static_cast<bool>(kept);
    held.lock();
    log(held, kept ? log_level::info : log_level::error,
        kept ? "a client that was invited has the token \"" + added.name_ + '"'
             : "a client was invited and not let in: " + kept.why().text);
  } catch (const std::bad_alloc&) {
    if (!held.owns_lock()) held.lock();
  }
  look(held);
  added.state_.store(is_kept ? token_addition::state::done : token_addition::state::failed,
                     std::memory_order_release);
}

void token_watch::state::run() noexcept {
  guard held(mutex);
  while (!stops) {
    const std::uint64_t asked = wanted;
    if (additions.empty()) {
      look(held);
    } else {
      const std::shared_ptr<token_addition> next = std::move(additions.front());
      additions.erase(additions.begin());
      write(held, *next);
    }
    done = asked;
    changed.notify_all();
    changed.wait_for(held, period,
                     [this] { return stops || wanted != done || !additions.empty(); });
  }
  has_ended = true;
  changed.notify_all();
}

token_watch::token_watch(const tls_settings& settings, std::shared_ptr<const tls_keys> first)
    : state_(std::make_shared<state>(settings, std::move(first))) {}

token_watch::~token_watch() {
  if (!thread_.joinable()) return;
  state::guard held(state_->mutex);
  state_->stops = true;
  state_->changed.notify_all();
  state_->changed.wait_for(held, longest_farewell, [this] { return state_->has_ended; });
  state_->changed.wait(held, [this] { return !state_->is_logging; });
  state_->is_left_behind = !state_->has_ended;
  held.unlock();
  state_->is_left_behind ? thread_.detach() : thread_.join();
}

std::shared_ptr<const tls_keys> token_watch::keys() const noexcept {
  const state::guard held(state_->mutex);
  return state_->keys;
}

std::uint64_t token_watch::version() const noexcept {
  return state_->version.load(std::memory_order_acquire);
}

void token_watch::begin() noexcept {
  const state::guard held(state_->mutex);
  if (std::exchange(state_->has_begun, true)) return;
  try {
    thread_ = std::thread([kept = state_] {
      // Handlers of the program run on the program's threads only.
      sigset_t all;
      ::sigfillset(&all);
      ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
      kept->run();
    });
  } catch (const std::exception&) {
    state_->has_begun = false;
  }
}

void token_watch::look() noexcept {
  state::guard held(state_->mutex);
  state& all = *state_;
  if (!all.has_begun) return all.look(held);
  const std::uint64_t mine = ++all.wanted;
  const bool hangs =
      all.looking_since && std::chrono::steady_clock::now() - *all.looking_since > longest_look;
  all.changed.notify_all();
  if (!hangs) all.changed.wait_for(held, longest_look, [&] { return all.done >= mine; });
}

void token_watch::add_token(std::shared_ptr<token_addition> added) {
  state::guard held(state_->mutex);
  if (!state_->has_begun) return state_->write(held, *added);
  state_->additions.push_back(std::move(added));
  state_->changed.notify_all();
}

void token_watch::tell() noexcept {
  const state::guard held(state_->mutex);
  state_->version.fetch_add(1, std::memory_order_release);
  for (token_observer* each : state_->observers) each->tokens_changed();
}

void token_watch::add(token_observer& told) {
  const state::guard held(state_->mutex);
  state_->observers.push_back(&told);
}

void token_watch::remove(token_observer& told) noexcept {
  const state::guard held(state_->mutex);
  std::erase(state_->observers, &told);
}

}  // namespace ucx::detail
