// The disk of a store: its threads, and what was asked of it and is not answered.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "base/disk_thread.hpp"
#include "base/inbox_task.hpp"
#include "base/result.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {

class store_core;
class store_host;
class worker_core;

/// A part of a store. When the disk has done what is asked of it, a handler answers. The handler is
/// called under the worker's lock, within the call or later. It gets `revoked` where the store is
/// closed before the disk has said anything. All of it is under that lock, but for what ends it.
class store_disk {
 public:
  /// Kinds of work that do not wait for each other.
  enum class lane : std::size_t { quick, listing, writing, putting };

  store_disk(const store_core& store, std::weak_ptr<store_host> server)
      : store_(store), server_(std::move(server)) {}
  store_disk(const store_disk&) = delete;
  store_disk& operator=(const store_disk&) = delete;

  /// Returns what such work waits in; nothing where the store is closed, or there is no thread.
  std::shared_ptr<disk_queue> queue(lane which);
  /// Has `work` done, and `answer` called with what it returns: a `Result`, or a `result` of one.
  /// Returns whether it was asked; else it is answered already. `always`: bounded by other means.
  template <class Result, class Work, class Answer>
  bool ask(lane which, Work work, Answer answer, bool always = false);

  // For the end of the store, without the lock; no thread is made then.
  /// Returns the queue of a thread that was made, although the store is closed.
  std::shared_ptr<disk_queue> last_queue(lane which) const noexcept;
  /// Has its threads end.
  void begin_stop() noexcept;
  /// Waits for them until `farewell`.
  void stop(std::chrono::steady_clock::time_point farewell) noexcept;
  /// Ends what is not answered, in a round of the worker, under whose lock this is.
  void end_questions(worker_core& home) noexcept;

 private:
  static constexpr std::size_t lanes = 4;
  /// By number: ends with an error, or what the disk said.
  using questions = std::unordered_map<std::uint64_t, std::function<void(std::error_code)>>;
  /// Ends those that are left.
  struct last_answers final : inbox_task {
    void run(worker_core& by) override;
    std::shared_ptr<questions> left;
  };

  std::error_code why_not_asked() const noexcept;

  const store_core& store_;
  const std::weak_ptr<store_host> server_;
  std::shared_ptr<questions> questions_ = std::make_shared<questions>();  // until it is closed
  std::shared_ptr<last_answers> ending_ = std::make_shared<last_answers>();
  std::uint64_t last_question_ = 0;
  std::array<std::optional<disk_thread>, lanes> threads_;
};

template <class Result, class Work, class Answer>
bool store_disk::ask(lane which, Work work, Answer answer, bool always) {
  const std::shared_ptr<disk_queue> disk = queue(which);
  if (!disk || !questions_) {
    answer(why_not_asked(), Result());
    return false;
  }
  const auto said = std::make_shared<result<Result>>(failure{errc::revoked});
  const std::uint64_t number = ++last_question_;
  disk_queue::answer ending = [number, weak = std::weak_ptr(questions_)] {
    const std::shared_ptr<questions> open = weak.lock();
    if (!open) return;
    auto ended = open->extract(number);
    if (!ended.empty()) ended.mapped()({});
  };
  disk_queue::work job = [said, work = std::move(work), ending = std::move(ending)]() mutable {
    try {
      *said = work();
    } catch (const std::bad_alloc&) {
      *said = failure{errc::no_memory};
    }
    return std::move(ending);
  };
  questions_->emplace(number, [said, answer](std::error_code refused) {
    if (!refused && *said) return answer(std::error_code(), *std::move(*said));
    answer(refused ? refused : said->why().code, Result());
  });
  try {
    if (always ? disk->start_always(std::move(job)) : disk->start(std::move(job))) return true;
  } catch (const std::bad_alloc&) {
    questions_->erase(number);
    throw;
  }
  questions_->erase(number);
  answer(errc::busy, Result());
  return false;
}

}  // namespace ucx::detail
