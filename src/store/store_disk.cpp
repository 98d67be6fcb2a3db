#include "store/store_disk.hpp"

#include "store/store_core.hpp"
#include "store/store_host.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// Jobs that may wait for a disk; more are refused with `busy`.
constexpr std::size_t most_waiting = 4096;

/// Hands an answer to the worker, or keeps it where there is no memory for that.
void deliver(worker_core& to, disk_queue::answer& answer) {
  const auto kept = std::make_shared<disk_queue::answer>(std::move(answer));
  try {
    to.post_work([kept] { std::exchange(*kept, nullptr)(); });
  } catch (const std::bad_alloc&) {
    answer = std::move(*kept);
    throw;
  }
}

}  // namespace

std::shared_ptr<disk_queue> store_disk::queue(lane which) {
  if (!store_.is_open()) return nullptr;
  std::optional<disk_thread>& thread = threads_[static_cast<std::size_t>(which)];
  try {
    if (!thread) {
      thread.emplace(most_waiting, [server = server_](disk_queue::answer& answer) {
        if (const std::shared_ptr<store_host> to = server.lock()) {
          deliver(*to->home(), answer);
        }
      });
    }
  } catch (const std::system_error&) {
    return nullptr;
  }
  return thread->queue();
}

std::error_code store_disk::why_not_asked() const noexcept {
  return store_.is_open() ? errc::busy : errc::revoked;
}

std::shared_ptr<disk_queue> store_disk::last_queue(lane which) const noexcept {
  const std::optional<disk_thread>& thread = threads_[static_cast<std::size_t>(which)];
  return thread ? thread->queue() : nullptr;
}

void store_disk::begin_stop() noexcept {
  for (std::optional<disk_thread>& each : threads_) {
    if (each) each->begin_stop();
  }
}

void store_disk::stop(std::chrono::steady_clock::time_point farewell) noexcept {
  for (std::optional<disk_thread>& each : threads_) {
    if (each) each->stop(farewell);
  }
}

void store_disk::last_answers::run(worker_core&) {
  while (!left->empty()) {
    try {
      left->extract(left->begin()).mapped()(errc::revoked);
    } catch (const std::bad_alloc&) {  // the client learns it from the end
    }
  }
}

void store_disk::end_questions(worker_core& home) noexcept {
  // Behind what was answered; the disk says nothing more.
  ending_->left = std::move(questions_);
  home.hand_over(std::move(ending_));
}

}  // namespace ucx::detail
