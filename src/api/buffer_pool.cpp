#include "ucx/buffer_pool.hpp"

#include <limits>
#include <new>
#include <string>
#include <utility>

#include "base/forked_child.hpp"
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

}  // namespace

buffer_pool::buffer_pool(const buffer_pool_options& options) {
  std::error_code ec;
  core_ = make_core(options, ec);
  if (ec) {
    throw error(ec, "making a pool of " + std::to_string(options.count) + " buffers of " +
                        std::to_string(options.size) + " bytes");
  }
}

buffer_pool::buffer_pool(const buffer_pool_options& options, std::error_code& ec)
    : core_(make_core(options, ec)) {}

buffer_pool::buffer_pool(buffer_pool&& other) noexcept = default;
buffer_pool& buffer_pool::operator=(buffer_pool&& other) noexcept {
  buffer_pool replaced(std::move(*this));
  core_ = std::move(other.core_);
  return *this;
}
// What is left of the pool, while buffers are out, has nobody to tell of them.
buffer_pool::~buffer_pool() {
  if (core_ && !detail::leave_to_parent(core_)) core_->when_available({});
}

buffer buffer_pool::take() {
  std::error_code ec;
  buffer taken = take(ec);
  if (ec) throw error(ec, "taking a buffer of a pool");
  return taken;
}

buffer buffer_pool::take(std::error_code& ec) {
  ec.clear();
  if (!core_) {
    ec = errc::closed;
    return {};
  }
  buffer taken = core_->take();
  if (!taken) ec = errc::would_block;
  return taken;
}

buffer buffer_pool::take(std::size_t size) {
  std::error_code ec;
  buffer taken = take(size, ec);
  if (ec) {
    throw error(ec, "taking a buffer for " + std::to_string(size) +
                        " bytes of a pool of buffers of " + std::to_string(buffer_size()));
  }
  return taken;
}

buffer buffer_pool::take(std::size_t size, std::error_code& ec) {
  if (core_ && size > core_->options().size) {
    ec = errc::buffer_too_small;
    return {};
  }
  buffer taken = take(ec);
  if (taken) taken.resize(size);
  return taken;
}

bool buffer_pool::owns(const buffer& candidate) const noexcept {
  return core_ && detail::buffer_home::of(candidate) == core_.get();
}

std::size_t buffer_pool::available() const noexcept { return core_ ? core_->available() : 0; }
std::size_t buffer_pool::count() const noexcept { return core_ ? core_->options().count : 0; }
std::size_t buffer_pool::buffer_size() const noexcept { return core_ ? core_->options().size : 0; }

void buffer_pool::when_available(move_only_handler<> handler) {
  if (core_) core_->when_available(std::move(handler));
}

}  // namespace ucx
