#include "base/forked_child.hpp"

#include <pthread.h>

#include "ucx/context.hpp"

namespace ucx {
namespace detail {
namespace {

constinit std::atomic<std::size_t> contexts{0};
constinit std::atomic<left_share*> left_so_far{nullptr};

[[maybe_unused]] const int forks_noticed = ::pthread_atfork(nullptr, nullptr, [] {
  if (contexts.load(std::memory_order_relaxed) > 0) {
    forked_child.store(true, std::memory_order_relaxed);
  }
});

}  // namespace

constinit std::atomic<bool> forked_child{false};

counted_context::counted_context() noexcept { contexts.fetch_add(1, std::memory_order_relaxed); }
counted_context::~counted_context() { contexts.fetch_sub(1, std::memory_order_relaxed); }

left_share::left_share() noexcept : next(left_so_far.exchange(this)) {}

}  // namespace detail

bool is_forked_child() noexcept { return detail::is_forked_child(); }

}  // namespace ucx
