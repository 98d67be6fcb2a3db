#include "detail/device_memory.hpp"

#include <utility>

#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

/// What a thread that serves others copies itself: less time than handing it to another one.
constexpr std::size_t longest_read_now = std::size_t{8} << 10U;

std::string said_of(const char* doing, std::size_t size, const memory_place& place) {
  return std::string(doing) + " " + std::to_string(size) + " bytes of " +
         std::string(to_string(place.kind)) + " memory";
}

}  // namespace

std::shared_ptr<device_memory> device_memory::borrow(const memory_place& place,
                                                     std::span<std::byte> bytes, std::string& what,
                                                     std::error_code& ec) {
  // An address beyond the memory is the host's, or another device's.
  if (bytes.empty() || place_of(bytes.data()) != place || place_of(&bytes.back()) != place) {
    what = said_of("exposing", bytes.size(), place) + " (not all of them are there)";
    ec = errc::invalid_argument;
    return nullptr;
  }
  std::shared_ptr<const cuda_context> context = cuda_context::of_address(bytes.data(), what, ec);
  if (ec) return nullptr;
  std::shared_ptr<device_copier> copier = device_copier::make(std::move(context), what, ec);
  if (ec) return nullptr;
  const std::shared_ptr<device_memory> made(new device_memory(place, std::move(copier)));
  made->bytes_ = bytes;
  return made;
}

std::shared_ptr<device_memory> device_memory::allocate(const memory_place& place, std::size_t size,
                                                       std::string& what, std::error_code& ec) {
  std::shared_ptr<const cuda_context> context = cuda_context::of_device(place.device, what, ec);
  if (ec) return nullptr;
  const memory_place found{place.kind, context->device()};
  std::shared_ptr<device_copier> copier = device_copier::make(std::move(context), what, ec);
  if (ec) return nullptr;
  const std::shared_ptr<device_memory> made(new device_memory(found, std::move(copier)));
  made->take_memory(size, what, ec);
  return ec ? nullptr : made;
}

device_memory::~device_memory() {
  if (!owned_) return;
  const current_context current(copier_->context());
  if (current.result() != cuda::success) return;  // the memory goes with its context
  copier_->context().driver().free(address_of(bytes_.data()));
}

void device_memory::take_memory(std::size_t size, std::string& what, std::error_code& ec) {
  const cuda_driver& driver = copier_->context().driver();
  const current_context current(copier_->context());
  const bool managed = place_.kind == memory_kind::cuda_managed;
  const char* call = "cuCtxPushCurrent";
  cuda::address made = 0;
  cuda::result result = current.result();
  if (result == cuda::success) {
    call = managed ? "cuMemAllocManaged" : "cuMemAlloc";
    result = managed ? driver.allocate_managed(&made, size, cuda::attach_global)
                     : driver.allocate(&made, size);
  }
  if (result == cuda::success) {
    owned_ = true;
    bytes_ = {reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(made)), size};
    result = copier_->clear(bytes_.data(), size, call);
  }
  if (result == cuda::success) return;
  what = said_of("allocating", size, place_) + " (" + cuda_words(driver, call, result) + ")";
  ec = cuda_error(result);
}

std::size_t device_memory::read_now(std::uint64_t offset, std::span<std::byte> into) noexcept {
  if (into.size() > longest_read_now) return 0;
  return read(offset, into) ? 0 : into.size();
}

std::error_code device_memory::read(std::uint64_t offset, std::span<std::byte> into) noexcept {
  return run([&] { return copier_->copy_out(into.data(), bytes_.data() + offset, into.size()); });
}

std::error_code device_memory::write(std::uint64_t offset,
                                     std::span<const std::byte> from) noexcept {
  return run([&] { return copier_->copy_in(bytes_.data() + offset, from.data(), from.size()); });
}

template <class Copy>
std::error_code device_memory::run(Copy&& copy) noexcept {
  if (!begin_copy()) return errc::revoked;
  const std::error_code ec = copy();
  end_copy();
  return ec;
}

bool device_memory::begin_copy() noexcept {
  const std::lock_guard guard(mutex_);
  if (withdrawn_) return false;
  ++copies_;
  return true;
}

void device_memory::end_copy() noexcept {
  const std::lock_guard guard(mutex_);
  if (--copies_ == 0) idle_.notify_all();
}

void device_memory::withdraw() noexcept {
  std::unique_lock guard(mutex_);
  withdrawn_ = true;
  idle_.wait_for(guard, longest_copy, [this] { return copies_ == 0; });
}

}  // namespace ucx::detail
