#include "worker/process_watcher.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/blocked_signals.hpp"
#include "base/inbox_task.hpp"
#include "wire/process_identity.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// The number by which the thread is woken to end.
constexpr std::uint64_t stop_number = 0;

bool add_to(const owned_descriptor& polled, int file, std::uint64_t number) noexcept {
  ::epoll_event wanted = {};
  wanted.events = EPOLLIN | EPOLLONESHOT;
  wanted.data.u64 = number;
  return ::epoll_ctl(polled.get(), EPOLL_CTL_ADD, file, &wanted) == 0;
}

}  // namespace

process_watcher::~process_watcher() {
  if (!thread_) return;
  if (process_ != ::getpid()) {
    // The thread's data may lie in memory that the C library has taken back in a child.
    static_cast<void>(thread_.release());
    return;
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const ::ssize_t written = ::write(stopping_.get(), &one, sizeof one);
  thread_->join();
}

std::unique_ptr<process_watch> process_watcher::watch(const process_identity& watched,
                                                      worker_core& told,
                                                      std::shared_ptr<inbox_task> work) {
  process_identity::opened opened = watched.open();
  if (opened.gone) {
    told.hand_over(std::move(work));
    return nullptr;
  }
  if (!opened.descriptor) return nullptr;
  const std::uint64_t number = ++last_;
  auto made = std::make_unique<process_watch>(*this, number);  // goes behind the lock
  const std::lock_guard guard(mutex_);
  if (!start()) return nullptr;
  const int file = opened.descriptor.get();
  watched_.emplace(number, entry{std::move(opened.descriptor), &told, std::move(work)});
  if (!add_to(ends_, file, number)) return nullptr;
  return made;
}

/// Returns whether there is a thread. REQUIRES: the mutex is held.
bool process_watcher::start() {
  if (thread_) return process_ == ::getpid();
  owned_descriptor ends(::epoll_create1(EPOLL_CLOEXEC));
  owned_descriptor stopping(::eventfd(0, EFD_CLOEXEC));
  if (!ends || !stopping || !add_to(ends, stopping.get(), stop_number)) return false;
  ends_ = std::move(ends);
  stopping_ = std::move(stopping);
  try {
    const blocked_signals meanwhile;
    thread_ = std::make_unique<std::thread>([this] { run(); });
  } catch (const std::system_error&) {
    return false;
  }
  process_ = ::getpid();
  return true;
}

void process_watcher::run() noexcept {
  for (;;) {
    ::epoll_event came = {};
    const int count = ::epoll_wait(ends_.get(), &came, 1, -1);
    if (count < 0 && errno != EINTR) return;
    if (count < 1) continue;
    if (came.data.u64 == stop_number) return;
    tell(came.data.u64);
  }
}

/// The worker lives as long as the number is in the table.
void process_watcher::tell(std::uint64_t number) noexcept {
  const std::lock_guard guard(mutex_);
  const auto found = watched_.find(number);
  if (found == watched_.end()) return;
  found->second.told->hand_over(std::move(found->second.work));
}

void process_watcher::forget(std::uint64_t number) noexcept {
  // In a child of fork() the thread that was lost may have held the mutex, and no worker is told.
  if (process_ != ::getpid()) return;
  const std::lock_guard guard(mutex_);
  watched_.erase(number);
}

}  // namespace ucx::detail
