#include "region/device_memory.hpp"

#include <cstdint>
#include <new>
#include <utility>

#include "cuda/device_pointer.hpp"
#include "cuda/timed_copy.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

/// A copier is closed when its memory is withdrawn.
std::error_code unless_closed(std::error_code ec) noexcept {
  return ec == errc::closed ? make_error_code(errc::revoked) : ec;
}

std::string said_of(const char* doing, std::size_t size, const memory_place& place) {
  return std::string(doing) + " " + std::to_string(size) + " bytes of " +
         std::string(to_string(place.kind)) + " memory";
}

}  // namespace

std::shared_ptr<device_memory> device_memory::borrow(const memory_place& place,
                                                     std::span<std::byte> bytes, std::string& what,
                                                     std::error_code& ec) {
  // An address beyond the memory is the host's, or another device's.
  if (bytes.empty() || place_of(bytes.data()) != place || place_of(&bytes.back()) != place ||
      !is_of_one_allocation(bytes)) {
    what = said_of("exposing", bytes.size(), place) + " (not all of them are there, or of one " +
           "allocation)";
    ec = errc::invalid_argument;
    return nullptr;
  }
  std::shared_ptr<const cuda_context> context = cuda_context::of_address(bytes.data(), what, ec);
  if (ec) return nullptr;
  std::shared_ptr<device_copier> copier = device_copier::make(std::move(context), what, ec);
  if (ec) return nullptr;
  const std::shared_ptr<device_memory> made(new device_memory(place, std::move(copier)));
  made->bytes_ = bytes;
  made->allocation_ = allocation_at(bytes.data());
  return made;
}

/// Returns whether the memory is still that which was borrowed.
bool device_memory::is_there() const noexcept {
  const std::uint64_t borrowed = allocation_.load(std::memory_order_relaxed);
  return borrowed == 0 || allocation_at(bytes_.data()) == borrowed;
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
  if (!ec) ec = made->clear(what);
  return ec ? nullptr : made;
}

device_memory::~device_memory() {
  // What copies keeps it, so this waits for nothing but the thread.
  copier_->close(std::chrono::steady_clock::now() + longest_copy);
  release();
}

/// REQUIRES: no copy of it runs.
void device_memory::release() noexcept {
  if (!std::exchange(owned_, false)) return;
  const current_context current(*copier_->context());
  if (current.result() != cuda::success) return;  // the memory goes with its context
  copier_->context()->driver().free(address_of(bytes_.data()));
}

void device_memory::take_memory(std::size_t size, std::string& what, std::error_code& ec) {
  const cuda_driver& driver = copier_->context()->driver();
  const current_context current(*copier_->context());
  const bool managed = place_.kind == memory_kind::cuda_managed;
  const char* call = "cuCtxPushCurrent";
  cuda::address made = 0;
  cuda::result result = current.result();
  if (result == cuda::success) {
    call = managed ? "cuMemAllocManaged" : "cuMemAlloc";
    result = managed ? driver.allocate_managed(&made, size, cuda::attach_global)
                     : driver.allocate(&made, size);
  }
  if (result != cuda::success) {
    what = said_of("allocating", size, place_) + " (" + cuda_words(driver, call, result) + ")";
    ec = cuda_error(result);
    return;
  }
  owned_ = true;
  bytes_ = {reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(made)), size};
}

/// A device that hangs has the memory for as long as it likes: it is given back behind that, and
/// not before.
std::error_code device_memory::clear(std::string& what) {
  const std::error_code ec =
      copier_->clear(shared_from_this(), bytes_, clock::now() + longest_copy);
  if (ec) what = said_of("allocating", bytes_.size(), place_) + " (setting them to zero)";
  return ec;
}

std::error_code device_memory::start(std::shared_ptr<device_copy> wanted,
                                     std::uint64_t offset) noexcept {
  if (!is_there()) return errc::io_error;
  wanted->device = bytes_.data() + offset;
  return unless_closed(copier_->start(std::move(wanted)));
}

std::error_code device_memory::read(std::uint64_t offset, std::span<std::byte> into) noexcept {
  if (!is_there()) return errc::io_error;
  return unless_closed(
      copy_from_device(*copier_, into, bytes_.data() + offset,
                       {clock::now() + longest_copy, nullptr, shared_from_this()}));
}

std::error_code device_memory::write(std::uint64_t offset,
                                     std::span<const std::byte> from) noexcept {
  if (!is_there()) return errc::io_error;
  return unless_closed(copy_to_device(*copier_, bytes_.data() + offset, from,
                                      {clock::now() + longest_copy, nullptr, shared_from_this()}));
}

void device_memory::withdraw() noexcept {
  allocation_.store(0, std::memory_order_relaxed);  // from here on the copier says why
  if (copier_->close(std::chrono::steady_clock::now() + longest_copy)) release();
}

}  // namespace ucx::detail
