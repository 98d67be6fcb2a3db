#include "memory/buffer_pool_core.hpp"

#include <utility>

namespace ucx::detail {

buffer_pool_core::buffer_pool_core(const buffer_pool_options& options)
    : options_(options),
      memory_(std::make_unique_for_overwrite<std::byte[]>(options.size * options.count)) {
  idle_.reserve(options.count);
  for (std::size_t i = options.count; i > 0; --i) {
    idle_.push_back(memory_.get() + (i - 1) * options.size);
  }
}

buffer buffer_pool_core::take() {
  if (is_inherited()) return {};
  const std::lock_guard guard(mutex_);
  if (idle_.empty()) return {};
  if (!self_) self_ = shared_from_this();
  std::byte* const taken = idle_.back();
  idle_.pop_back();
  return make_of(taken);
}

buffer buffer_pool_core::take_for(buffer_waiter& waiter) {
  if (is_inherited()) return {};
  const std::lock_guard guard(mutex_);
  if (std::byte* const kept = std::exchange(waiter.laid_aside_, nullptr)) return make_of(kept);
  if (idle_.empty()) {
    if (!waiter.linked()) line_.push_back(waiter);
    return {};
  }
  if (!self_) self_ = shared_from_this();
  std::byte* const taken = idle_.back();
  idle_.pop_back();
  return make_of(taken);
}

move_only_handler<> buffer_pool_core::leave(buffer_waiter& waiter) noexcept {
  if (is_inherited()) return {};
  std::byte* unwanted = nullptr;
  {
    const std::lock_guard guard(mutex_);
    if (waiter.linked()) line_.remove(waiter);
    unwanted = std::exchange(waiter.laid_aside_, nullptr);
  }
  return unwanted != nullptr ? take_back({unwanted, options_.size}) : move_only_handler<>();
}

std::size_t buffer_pool_core::available() const noexcept {
  if (is_inherited()) return 0;
  const std::lock_guard guard(mutex_);
  return idle_.size();
}

void buffer_pool_core::when_available(move_only_handler<> handler) {
  if (is_inherited()) return;
  {
    const std::lock_guard guard(mutex_);
    if (idle_.empty()) {
      std::swap(waiting_, handler);  // the one before goes behind the lock
      return;
    }
  }
  if (handler) handler();
}

move_only_handler<> buffer_pool_core::take_back(std::span<std::byte> bytes) noexcept {
  std::shared_ptr<buffer_pool_core> last;  // goes behind the lock
  const std::lock_guard guard(mutex_);
  if (buffer_waiter* const first = line_.front()) {
    line_.remove(*first);
    first->laid_aside_ = bytes.data();
    first->buffer_came();
    return {};
  }
  idle_.push_back(bytes.data());
  if (idle_.size() == options_.count) last = std::move(self_);
  return std::exchange(waiting_, {});
}

}  // namespace ucx::detail
