#include "memory/memory_source.hpp"

#include <cstdint>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>

#include "cuda/cuda_context.hpp"
#include "os/huge_page.hpp"
#include "ucp/ucp_api.hpp"
#include "ucx/error.hpp"
#include "worker/context_core.hpp"

namespace ucx::detail {
namespace {

constexpr std::size_t page_size = 4096;

/// In a device's primary context, whichever thread asks.
class cuda_source final : public memory_source {
 public:
  cuda_source(memory_kind kind, std::shared_ptr<const cuda_context> context) noexcept
      : place_{kind, context->device()}, context_(std::move(context)) {}

  memory_place place() const noexcept override { return place_; }
  std::size_t alignment() const noexcept override { return 256; }

  void* allocate(std::size_t size) noexcept override {
    const cuda_driver& driver = context_->driver();
    const current_context current(*context_);
    if (current.result() != cuda::success) return nullptr;
    void* pinned = nullptr;
    cuda::address made = 0;
    cuda::result result = cuda::success;
    if (place_.kind == memory_kind::cuda_pinned) {
      result = driver.host_allocate(&pinned, size, cuda::host_portable);
    } else if (place_.kind == memory_kind::cuda_managed) {
      result = driver.allocate_managed(&made, size, cuda::attach_global);
    } else {
      result = driver.allocate(&made, size);
    }
    if (result != cuda::success) return nullptr;
    return pinned != nullptr ? pinned : reinterpret_cast<void*>(static_cast<std::uintptr_t>(made));
  }

  void free(void* block, std::size_t) noexcept override {
    const cuda_driver& driver = context_->driver();
    const current_context current(*context_);
    if (place_.kind == memory_kind::cuda_pinned) {
      driver.host_free(block);
    } else {
      driver.free(static_cast<cuda::address>(reinterpret_cast<std::uintptr_t>(block)));
    }
  }

 private:
  const memory_place place_;
  const std::shared_ptr<const cuda_context> context_;
};

class host_source : public memory_source {
 public:
  memory_place place() const noexcept override { return {}; }
  std::size_t alignment() const noexcept override { return page_size; }
  void* allocate(std::size_t size) noexcept override {
    const auto alignment = std::align_val_t(alignment_of(size, page_size));
    void* const made = ::operator new(size, alignment, std::nothrow);
    if (made != nullptr) advise_huge_pages(made, size);
    return made;
  }
  void free(void* block, std::size_t size) noexcept override {
    ::operator delete(block, std::align_val_t(alignment_of(size, page_size)));
  }
};

class registered_source final : public host_source {
 public:
  explicit registered_source(std::shared_ptr<context_core> context) noexcept
      : context_(std::move(context)) {}

  void* allocate(std::size_t size) noexcept override {
    void* const made = host_source::allocate(size);
    if (made != nullptr && !enter(made, size)) {
      host_source::free(made, size);
      return nullptr;
    }
    return made;
  }

  void free(void* block, std::size_t size) noexcept override {
    const auto handle = take(block);
    if (handle != nullptr) context_->api().mem_unmap(context_->handle(), handle);
    host_source::free(block, size);
  }

 private:
  bool enter(void* block, std::size_t size) noexcept {
    ucp_mem_map_params_t params = {};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    params.address = block;
    params.length = size;
    ucp_mem_h handle = nullptr;
    const ucs_status_t status = context_->api().mem_map(context_->handle(), &params, &handle);
    if (status != UCS_OK) return false;
    try {
      const std::lock_guard guard(mutex_);
      handles_.emplace(block, handle);
      return true;
    } catch (const std::bad_alloc&) {
      context_->api().mem_unmap(context_->handle(), handle);
      return false;
    }
  }
  ucp_mem_h take(void* block) noexcept {
    const std::lock_guard guard(mutex_);
    const auto found = handles_.extract(block);
    return found.empty() ? nullptr : found.mapped();
  }

  const std::shared_ptr<context_core> context_;
  std::mutex mutex_;
  std::unordered_map<void*, ucp_mem_h> handles_;
};

}  // namespace

result<std::unique_ptr<memory_source>> memory_source::of(const memory_place& place) {
  switch (place.kind) {
    case memory_kind::host:
      return std::make_unique<host_source>();
    case memory_kind::cuda:
    case memory_kind::cuda_managed:
    case memory_kind::cuda_pinned: {
      auto context = cuda_context::of_device(place.device);
      if (!context) return context.why();
      return std::make_unique<cuda_source>(place.kind, *std::move(context));
    }
    case memory_kind::rocm:
    case memory_kind::other:
      break;
  }
  return failure{errc::not_supported,
                 "making a pool of " + std::string(to_string(place.kind)) + " memory"};
}

std::unique_ptr<memory_source> memory_source::registered(std::shared_ptr<context_core> context) {
  return std::make_unique<registered_source>(std::move(context));
}

}  // namespace ucx::detail
