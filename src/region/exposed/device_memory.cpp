#include "region/exposed/device_memory.hpp"

#include <cstdint>
#include <new>
#include <string>
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

result<std::shared_ptr<device_memory>> device_memory::borrow(const memory_place& place,
                                                             std::span<std::byte> bytes) {
  // An address beyond the memory is the host's, or another device's.
  if (bytes.empty() || place_of(bytes.data()) != place || place_of(&bytes.back()) != place ||
      !is_of_one_allocation(bytes)) {
    return failure{errc::invalid_argument, said_of("exposing", bytes.size(), place) +
                                               " (not all of them are there, or of one " +
                                               "allocation)"};
  }
  auto context = cuda_context::of_address(bytes.data());
  if (!context) return context.why();
  auto copier = device_copier::make(*std::move(context));
  if (!copier) return copier.why();
  const std::shared_ptr<device_memory> made(new device_memory(place, *std::move(copier)));
  made->bytes_ = bytes;
  made->allocation_ = allocation_at(bytes.data());
  return made;
}

/// Returns whether the memory is still that which was borrowed.
bool device_memory::is_there() const noexcept {
  const std::uint64_t borrowed = allocation_.load(std::memory_order_relaxed);
  return borrowed == 0 || allocation_at(bytes_.data()) == borrowed;
}

result<std::shared_ptr<device_memory>> device_memory::allocate(const memory_place& place,
                                                               std::size_t size) {
  auto context = cuda_context::of_device(place.device);
  if (!context) return context.why();
  const memory_place found{place.kind, (*context)->device()};
  auto copier = device_copier::make(*std::move(context));
  if (!copier) return copier.why();
  const std::shared_ptr<device_memory> made(new device_memory(found, *std::move(copier)));
  if (const auto taken = made->take_memory(size); !taken) return taken.why();
  if (const auto cleared = made->clear(); !cleared) return cleared.why();
  return made;
}

device_memory::~device_memory() {
  // Each copy holds a reference to this object, so none runs now: only the thread is waited for.
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

result<void> device_memory::take_memory(std::size_t size) {
  const cuda_driver& driver = copier_->context()->driver();
  const current_context current(*copier_->context());
  const bool managed = place_.kind == memory_kind::cuda_managed;
  const char* call = "cuCtxPushCurrent";
  cuda::address made = 0;
  cuda::result said = current.result();
  if (said == cuda::success) {
    call = managed ? "cuMemAllocManaged" : "cuMemAlloc";
    said = managed ? driver.allocate_managed(&made, size, cuda::attach_global)
                   : driver.allocate(&made, size);
  }
  if (said != cuda::success) {
    return failure{cuda_error(said), said_of("allocating", size, place_) + " (" +
                                         cuda_words(driver, call, said) + ")"};
  }
  owned_ = true;
  bytes_ = {reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(made)), size};
  return {};
}

/// A device that hangs has the memory for as long as it likes: it is given back behind that, and
/// not before.
result<void> device_memory::clear() {
  const std::error_code ec =
      copier_->clear(shared_from_this(), bytes_, clock::now() + longest_copy);
  if (!ec) return {};
  return failure{ec, said_of("allocating", bytes_.size(), place_) + " (setting them to zero)"};
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
