#include "ucx/buffer.hpp"

#include <limits>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "base/forked_child.hpp"
#include "base/result.hpp"
#include "memory/buffer_pool_core.hpp"
#include "ucx/error.hpp"

namespace ucx {
namespace {

std::shared_ptr<detail::buffer_pool_core> make_core(const buffer_pool_options& options,
                                                    std::error_code& ec) {
  ec.clear();
  if (options.size == 0 || options.count == 0 ||
      options.size > std::numeric_limits<std::ptrdiff_t>::max() / options.count) {
    ec = errc::bad_pool;
    return nullptr;
  }
  try {
    return std::make_shared<detail::buffer_pool_core>(options);
  } catch (const std::bad_alloc&) {
    ec = errc::no_memory;
    return nullptr;
  }
}

/// Takes a buffer, or says in `ec` why there is none; `ec` comes without an error.
buffer take_of(detail::buffer_pool_core* pool, std::error_code& ec) {
  if (pool == nullptr || pool->is_inherited()) {
    ec = pool == nullptr ? errc::closed : errc::forked_child;
    return {};
  }
  buffer taken = pool->take();
  if (!taken) ec = errc::would_block;
  return taken;
}

}  // namespace

buffer_pool::buffer_pool(const buffer_pool_options& options, std::error_code& ec) {
  std::error_code outcome;
  core_ = make_core(options, outcome);
  detail::end_with(outcome, ec, [&] {
    return "making a pool of " + std::to_string(options.count) + " buffers of " +
           std::to_string(options.size) + " bytes";
  });
}

buffer_pool::buffer_pool(buffer_pool&& other) noexcept = default;
buffer_pool& buffer_pool::operator=(buffer_pool&& other) noexcept {
  buffer_pool replaced(std::move(*this));
  core_ = std::move(other.core_);
  return *this;
}
// Drops the handler: buffers that are still out do not call it when they come back.
buffer_pool::~buffer_pool() {
  if (core_ && !detail::leave_to_parent(core_)) core_->when_available({});
}

buffer buffer_pool::take(std::optional<std::size_t> size, std::error_code& ec) {
  std::error_code outcome;
  buffer taken;
  if (core_ && size > core_->options().size) {
    outcome = errc::buffer_too_small;
  } else {
    taken = take_of(core_.get(), outcome);
  }
  if (taken && size) taken.resize(*size);
  detail::end_with(outcome, ec, [&] {
    if (!size) return std::string("taking a buffer of a pool");
    return "taking a buffer for " + std::to_string(*size) + " bytes of a pool of buffers of " +
           std::to_string(core_ ? core_->options().size : 0);
  });
  return taken;
}

bool buffer_pool::owns(const buffer& candidate) const noexcept {
  return core_ && detail::buffer_home::of(candidate) == core_.get();
}

std::size_t buffer_pool::available() const noexcept { return core_ ? core_->available() : 0; }
std::size_t buffer_pool::count() const noexcept { return core_ ? core_->options().count : 0; }
#if UCXIO_OLD_NAMES
std::size_t buffer_pool::buffer_size() const noexcept { return core_ ? core_->options().size : 0; }
#endif

void buffer_pool::when_available(move_only_handler<> handler) {
  if (core_) core_->when_available(std::move(handler));
}

}  // namespace ucx
