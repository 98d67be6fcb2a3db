// The ends of other processes of this host, told to the workers that have connections to them.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "base/owned_descriptor.hpp"

namespace ucx::detail {

class inbox_task;
class process_watch;
struct process_identity;
class worker_core;

/// Has a thread, which begins with the first process that is watched. The thread sleeps until one
/// of them ends, and wakes no worker before. Safe from any thread.
class process_watcher {
 public:
  process_watcher() noexcept = default;
  process_watcher(const process_watcher&) = delete;
  process_watcher& operator=(const process_watcher&) = delete;
  /// REQUIRES: nothing is watched any more.
  ~process_watcher();

  /// Has `work` handed to `told` when `watched` ends. If it has ended, that happens at once, and
  /// there is no watch. Returns null as well where the system can not tell.
  std::unique_ptr<process_watch> watch(const process_identity& watched, worker_core& told,
                                       std::shared_ptr<inbox_task> work);

 private:
  friend class process_watch;
  struct entry {
    owned_descriptor process;
    worker_core* told;
    std::shared_ptr<inbox_task> work;
  };

  bool start();
  void run() noexcept;
  void tell(std::uint64_t number) noexcept;
  void forget(std::uint64_t number) noexcept;

  std::mutex mutex_;
  std::unordered_map<std::uint64_t, entry> watched_;
  std::atomic<std::uint64_t> last_{0};
  owned_descriptor ends_;      // an epoll of them all
  owned_descriptor stopping_;  // readable when the thread is to end
  std::unique_ptr<std::thread> thread_;
  std::atomic<::pid_t> process_{-1};  // that has the thread: a child of fork() has not
};

/// Ends the watch with its own end: the worker is not told any more.
class process_watch {
 public:
  process_watch(process_watcher& by, std::uint64_t number) noexcept : by_(by), number_(number) {}
  process_watch(const process_watch&) = delete;
  process_watch& operator=(const process_watch&) = delete;
  ~process_watch() { by_.forget(number_); }

 private:
  process_watcher& by_;
  const std::uint64_t number_;
};

}  // namespace ucx::detail
