#include "store/file_account.hpp"

#include <algorithm>

#include "store/store_file.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {

bool store_quota::charge(std::uint64_t growth) noexcept {
  std::uint64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (growth > 0 && (used > limit_ || growth > limit_ - used)) return false;
  } while (!used_.compare_exchange_weak(used, used + growth, std::memory_order_relaxed));
  return true;
}

void store_quota::refund(std::uint64_t bytes) noexcept {
  std::uint64_t used = used_.load(std::memory_order_relaxed);
  // Others may have changed the directory behind our back: it never falls below nothing.
  while (
      !used_.compare_exchange_weak(used, used - std::min(used, bytes), std::memory_order_relaxed)) {
  }
}

bool file_account::is_written() const noexcept {
  const std::lock_guard guard(mutex_);
  return pending_ > 0;
}

std::error_code file_account::take(std::uint64_t end) noexcept {
  const std::lock_guard guard(mutex_);
  if (abandoned_) return errc::no_such_name;
  if (resizing_) return errc::busy;
  if (failure_ && pending_ > 0) return failure_;
  failure_.clear();
  if (end > size() && !quota_->charge(end - size())) return errc::no_space;
  size_.store(std::max(end, size()), std::memory_order_relaxed);
  ++pending_;
  return {};
}

void file_account::take_back(std::uint64_t size_before) noexcept {
  const std::lock_guard guard(mutex_);
  --pending_;
  if (abandoned_) return;
  quota_->refund(size() - size_before);
  size_.store(size_before, std::memory_order_relaxed);
}

void file_account::wrote(const store_file& file, std::error_code ec) noexcept {
  bool failed = false;
  {
    const std::lock_guard guard(mutex_);
    if (ec && !failure_) failure_ = ec;
    failed = static_cast<bool>(failure_);
  }
  // Without the lock: this may take as long as a disk does.
  const std::optional<std::uint64_t> real = failed ? file.size_now() : std::nullopt;
  const std::lock_guard guard(mutex_);
  if (--pending_ > 0 || !failed) return;
  failure_.clear();
  count(real);
}

std::error_code file_account::begin_resize(std::uint64_t size) noexcept {
  const std::lock_guard guard(mutex_);
  if (abandoned_) return errc::no_such_name;
  if (pending_ > 0) return errc::busy;
  if (size > this->size() && !quota_->charge(size - this->size())) return errc::no_space;
  size_.store(std::max(size, this->size()), std::memory_order_relaxed);
  ++pending_;
  resizing_ = true;
  return {};
}

void file_account::resized(const store_file& file) noexcept {
  const std::optional<std::uint64_t> real = file.size_now();
  const std::lock_guard guard(mutex_);
  --pending_;
  resizing_ = false;
  count(real);
}

/// Keeps the expected size where the real one can not be told.
void file_account::count(std::optional<std::uint64_t> real) noexcept {
  if (abandoned_ || !real) return;
  if (*real < size()) quota_->refund(size() - *real);
  size_.store(*real, std::memory_order_relaxed);
}

void file_account::abandon() noexcept {
  const std::lock_guard guard(mutex_);
  if (!abandoned_) quota_->refund(size());
  abandoned_ = true;
}

}  // namespace ucx::detail
