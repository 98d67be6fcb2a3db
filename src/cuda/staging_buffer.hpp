// Memory of the host's that bytes pass on their way from or to a device, pinned where it can be.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "cuda/staging_account.hpp"

namespace ucx::detail {

class cuda_context;

/// It is pinned by registering it, and not allocated as such. So it stays ordinary memory when the
/// context goes that it was pinned in, and UCX may go on reading it.
class staging_buffer {
 public:
  staging_buffer() noexcept = default;
  /// Allocates `size` bytes, which begin a page. Holds nothing where there is no memory.
  staging_buffer(std::size_t size, std::shared_ptr<staging_account> account) noexcept;
  staging_buffer(staging_buffer&& other) noexcept { swap(other); }
  staging_buffer& operator=(staging_buffer&& other) noexcept {
    staging_buffer(std::move(other)).swap(*this);
    return *this;
  }
  /// REQUIRES: the driver has let go of it.
  ~staging_buffer();

  std::byte* get() const noexcept { return bytes_; }
  std::size_t size() const noexcept { return size_; }
  explicit operator bool() const noexcept { return bytes_ != nullptr; }
  const std::shared_ptr<staging_account>& account() const noexcept { return account_; }

  /// Pins it, unless it is pinned. Does nothing where the account does not allow it, the driver
  /// does not do it, or the primary context of `device` is not in use. Through that context the
  /// registration outlives contexts of the program's. Calls the driver, which may take long.
  void pin(int device) noexcept;
  bool is_pinned() const noexcept { return pinned_in_ != nullptr; }

 private:
  void swap(staging_buffer& other) noexcept;

  std::byte* bytes_ = nullptr;
  std::size_t size_ = 0;
  std::shared_ptr<staging_account> account_;
  std::shared_ptr<const cuda_context> pinned_in_;
};

}  // namespace ucx::detail
