#include "cuda/staging_buffer.hpp"

#include <new>

#include "cuda/cuda_context.hpp"

namespace ucx::detail {
namespace {

constexpr std::align_val_t page{4096};

}  // namespace

staging_buffer::staging_buffer(std::size_t size, std::shared_ptr<staging_account> account) noexcept
    : bytes_(static_cast<std::byte*>(::operator new(size, page, std::nothrow))),
      size_(bytes_ != nullptr ? size : 0),
      account_(std::move(account)) {
  account_->add(size_);
}

staging_buffer::~staging_buffer() {
  if (is_pinned()) {
    const current_context current(*pinned_in_);
    if (current.result() == cuda::success) pinned_in_->driver().host_unregister(bytes_);
    account_->give_back(size_);
  }
  if (account_) account_->remove(size_);
  ::operator delete(bytes_, page);
}

void staging_buffer::pin(int device) noexcept {
  if (bytes_ == nullptr || is_pinned() || !account_->take(size_)) return;
  std::shared_ptr<const cuda_context> context = cuda_context::primary_in_use(device);
  if (context) {
    const current_context current(*context);
    if (current.result() == cuda::success &&
        context->driver().host_register(bytes_, size_, cuda::register_portable) == cuda::success) {
      pinned_in_ = std::move(context);
      return;
    }
  }
  account_->give_back(size_);
}

void staging_buffer::swap(staging_buffer& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(size_, other.size_);
  account_.swap(other.account_);
  pinned_in_.swap(other.pinned_in_);
}

}  // namespace ucx::detail
