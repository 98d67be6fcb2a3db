#include "ucx/memory_resources.hpp"

#include <new>
#include <utility>

#include "base/forked_child.hpp"
#include "base/result.hpp"
#include "memory/memory_pool_core.hpp"
#include "memory/memory_source.hpp"
#include "ucx/error.hpp"
#include "worker/context_core.hpp"
#include "worker/core_access.hpp"

namespace ucx {
namespace {

using made_core = detail::result<std::unique_ptr<detail::memory_pool_core>>;

made_core make(const memory_place& place, const memory_pool_options& options) {
  auto source = detail::memory_source::of(place);
  if (!source) return source.why();
  return std::make_unique<detail::memory_pool_core>(*std::move(source), options.max_size);
}

made_core make(const context& registering, const memory_pool_options& options) {
  const std::shared_ptr<detail::context_core>& context = detail::core_access::core(registering);
  if (!context) return detail::failure{errc::closed, "making a pool of registered memory"};
  if (context->is_inherited()) {
    return detail::failure{errc::forked_child, "making a pool of registered memory"};
  }
  if (!context->has(feature::rma)) {
    return detail::failure{
        errc::feature_disabled,
        "making a pool of registered memory: its context was made without feature::rma"};
  }
  return std::make_unique<detail::memory_pool_core>(detail::memory_source::registered(context),
                                                    options.max_size);
}

}  // namespace

memory_pool::memory_pool(const memory_place& place, const memory_pool_options& options,
                         std::error_code& ec)
    : core_(make(place, options).or_end(ec)) {}

memory_pool::memory_pool(const context& registering, const memory_pool_options& options,
                         std::error_code& ec)
    : core_(make(registering, options).or_end(ec)) {}

memory_pool::~memory_pool() { detail::leave_to_parent(core_); }

memory_place memory_pool::place() const noexcept { return core_ ? core_->place() : memory_place(); }

memory_pool_usage memory_pool::usage() const noexcept {
  return core_ ? core_->usage() : memory_pool_usage();
}

void memory_pool::release_unused() noexcept {
  if (core_) core_->release_unused();
}

void* memory_pool::do_allocate(std::size_t size, std::size_t alignment) {
  if (!core_) throw std::bad_alloc();
  return core_->allocate(size, alignment);
}

void memory_pool::do_deallocate(void* block, std::size_t, std::size_t) {
  if (core_) core_->give_back(block);
}

bool memory_pool::do_is_equal(const std::pmr::memory_resource& other) const noexcept {
  return this == &other;
}

}  // namespace ucx
