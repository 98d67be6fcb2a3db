#include "base/forked_child.hpp"

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ucx {
namespace detail {
namespace {

constinit std::atomic<std::uint32_t> forks{0};
constinit std::atomic<std::size_t> contexts{0};
constinit std::atomic<std::size_t> contexts_of_ucx{0};
constinit std::atomic<bool> parent_had_contexts{false};
constinit std::atomic<bool> parent_had_ucx{false};
constinit std::atomic<left_share*> left_so_far{nullptr};

[[maybe_unused]] const int forks_noticed =
    ::pthread_atfork(nullptr, nullptr, &process_stamp::begin_process);

}  // namespace

constinit std::atomic<std::uint32_t> process_stamp::current_{0};

/// In a child, before it goes on.
void process_stamp::begin_process() noexcept {
  forks.fetch_add(1, std::memory_order_relaxed);
  if (contexts.load(std::memory_order_relaxed) > 0) {
    current_.fetch_add(1, std::memory_order_relaxed);
    parent_had_contexts.store(true, std::memory_order_relaxed);
  }
  if (contexts_of_ucx.load(std::memory_order_relaxed) > 0) {
    parent_had_ucx.store(true, std::memory_order_relaxed);
  }
}

std::uint32_t forks_so_far() noexcept { return forks.load(std::memory_order_relaxed); }

bool lost_ucx_by_fork() noexcept { return parent_had_ucx.load(std::memory_order_relaxed); }

counted_context::counted_context(bool is_of_ucx) noexcept : is_of_ucx_(is_of_ucx) {
  contexts.fetch_add(1, std::memory_order_relaxed);
  if (is_of_ucx_) contexts_of_ucx.fetch_add(1, std::memory_order_relaxed);
}

counted_context::~counted_context() {
  contexts.fetch_sub(1, std::memory_order_relaxed);
  if (is_of_ucx_) contexts_of_ucx.fetch_sub(1, std::memory_order_relaxed);
}

left_share::left_share() noexcept : next(left_so_far.exchange(this)) {}

}  // namespace detail

bool is_forked_child() noexcept {
  return detail::parent_had_contexts.load(std::memory_order_relaxed);
}

}  // namespace ucx
