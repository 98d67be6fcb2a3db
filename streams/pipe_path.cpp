#include "pipe_path.hpp"

#include <random>
#include <utility>

#include "ucx/error.hpp"
#include "ucx/wait.hpp"

namespace ucx::detail {

pipe_waiter::pipe_waiter(worker& driven, std::stop_token stop, std::size_t most)
    : driven_(driven), stop_(std::move(stop)), shared_(std::make_shared<shared>()) {
  shared_->awaited.reserve(most + 1);
  if (!stop_.stop_possible()) return;
  // A receive that nothing answers: nobody knows its tag.
  std::random_device random;
  const std::uint64_t tag = (std::uint64_t{random()} << 32U) | random();
  shared_->awaited.push_back(
      driven_.start_receive(tag, std::span<std::byte>(), {.timeout = pipe_patience}));
  shared_->stop = &shared_->awaited.front();
  on_stop_.emplace(stop_, [this] {
    // On the thread that drives the worker: no other may touch requests of every mode.
    driven_.post([held = std::weak_ptr<shared>(shared_)] {
      if (const auto here = held.lock()) here->stop->cancel();
    });
  });
}

pipe_waiter::~pipe_waiter() {
  // Behind this no callback runs, and what one has posted finds nothing.
  on_stop_.reset();
}

std::error_code pipe_waiter::wait(std::span<request* const> wanted,
                                  std::chrono::nanoseconds limit) {
  if (stopped()) return errc::canceled;
  std::vector<request>& awaited = shared_->awaited;
  const std::size_t before = awaited.size();
  for (request* each : wanted) awaited.push_back(std::move(*each));
  std::error_code ec;
  try {
    if (!wait_any(awaited, limit > limit.zero() ? limit : pipe_patience)) ec = errc::timed_out;
  } catch (const error& failed) {
    ec = failed.code();
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) *wanted[i] = std::move(awaited[before + i]);
  awaited.resize(before);
  return stopped() ? make_error_code(errc::canceled) : ec;
}

}  // namespace ucx::detail
