#include "copying/copy_job.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "copying/small_copy.hpp"
#include "ucx/error.hpp"

namespace ucx::tool {
namespace {

/// Names that are open at a time, where it is looked whether earlier copies have left something.
constexpr std::size_t most_open = 96;

bool opens_names(const copy_task& task) noexcept {
  return task.to.is_remote() && !task.goes_into_new;
}

}  // namespace

copy_job::copy_job(const copy_context& context, report on_failure)
    : asked_(context.stop),
      context_{context.clients,        context.terms,     context.limit,   context.counters,
               context.left_something, context.tell_hash, end_.get_token()},
      on_failure_(std::move(on_failure)),
      forwarding_(asked_, [this] { end_.request_stop(); }) {}

std::size_t copy_job::run(std::vector<copy_task> tasks, unsigned threads) {
  tasks_ = std::move(tasks);
  batch_ = std::clamp<std::size_t>(tasks_.size() / threads, 1, most_small);
  batch_of_names_ = std::clamp<std::size_t>(most_open / threads, 1, batch_);
  {
    std::vector<std::jthread> workers;
    for (unsigned i = 0; i < threads; ++i) workers.emplace_back([this] { work(); });
  }
  if (ended_by_) throw failure(*ended_by_);
  return failures_;
}

void copy_job::work() {
  std::vector<std::byte> buffer(file_copy::piece_size);
  for (;;) {
    const std::vector<copy_task> small = take_small();
    const auto tell = [this](const failure& why) { failed(why); };
    for (const copy_task& left : copy_small(small, context_, tell)) {
      if (const file alone = open(left)) copy_alone(alone, buffer);
    }
    if (!small.empty()) continue;
    const file current = next();
    if (!current) return;
    copy_alone(current, buffer);
  }
}

void copy_job::copy_alone(const file& alone, std::span<std::byte> buffer) {
  while (const auto piece = alone->take()) alone->move(*piece, buffer);
  if (alone->leave()) finish(alone);
}

/// Returns files that go together; nothing where the next one is to be copied by itself.
std::vector<copy_task> copy_job::take_small() {
  std::vector<copy_task> taken;
  const std::lock_guard guard(mutex_);
  if (ended_by_ || context_.stop.stop_requested()) return taken;
  while (next_ < tasks_.size() && is_small(tasks_[next_], context_)) {
    const copy_task& task = tasks_[next_];
    if (taken.size() >= (opens_names(task) ? batch_of_names_ : batch_)) break;
    if (!taken.empty() && !is_alike(taken.front(), task)) break;
    taken.push_back(task);
    ++next_;
  }
  return taken;
}

/// Returns a file to work at: one that others work at, or the next; nothing at the end.
copy_job::file copy_job::next() {
  std::unique_lock guard(mutex_);
  for (;;) {
    for (const file& each : large_) {
      if (each->join()) return each;
    }
    if (next_ < tasks_.size() && !ended_by_) {
      const copy_task& task = tasks_[next_++];
      ++opening_;
      guard.unlock();
      file opened = open(task);
      guard.lock();
      --opening_;
      if (opened && opened->is_large()) large_.push_back(opened);
      changed_.notify_all();
      if (opened) return opened;
    } else if (opening_ == 0) {
      return nullptr;
    } else {
      changed_.wait(guard);
    }
  }
}

copy_job::file copy_job::open(const copy_task& task) {
  try {
    return std::make_shared<file_copy>(task, context_);
  } catch (const failure& why) {
    failed(why);
  } catch (const error& why) {
    failed(failure(exit_code_of(why.code()), why.what()));
  } catch (const std::exception& why) {
    failed(failure(exit_code::failure, why.what()));
  }
  return nullptr;
}

void copy_job::finish(const file& whole) {
  std::optional<failure> why;
  try {
    whole->finish();
  } catch (const failure& failed) {
    why = failed;
  }
  {
    const std::lock_guard guard(mutex_);
    large_.remove(whole);
  }
  if (why) failed(*why);
}

void copy_job::failed(const failure& why) {
  const std::lock_guard guard(mutex_);
  ++failures_;
  const bool is_interrupted = asked_.stop_requested();
  if (is_interrupted || tasks_.size() == 1 || why.ends_all()) {
    if (!ended_by_) ended_by_ = is_interrupted ? interrupted() : why;
    end_.request_stop();
  } else if (!ended_by_) {
    on_failure_(why);
  }
  changed_.notify_all();
}

}  // namespace ucx::tool
