#include "ucx/memory_copy.hpp"

#include <cstring>
#include <memory>
#include <string>

#include "detail/device_copiers.hpp"
#include "detail/device_pointer.hpp"
#include "ucx/error.hpp"

namespace ucx {

bool detail::asks_driver(const void* address) noexcept { return driver_copies(address); }

void copy_memory(void* into, const void* from, std::size_t size, std::error_code& ec,
                 void* cuda_stream) {
  ec.clear();
  if (size == 0) return;
  const bool to_device = detail::is_on_device(into);
  const bool from_device = detail::is_on_device(from);
  if (!to_device && !from_device) {
    std::memcpy(into, from, size);
    return;
  }
  detail::device_copiers copiers;
  const auto copier = copiers.of(to_device ? into : from, ec);
  if (!copier) return;
  if (cuda_stream != nullptr) {
    const auto mark = detail::stream_mark::of(copier->context(), cuda_stream, ec);
    if (!ec) ec = copier->follow(*mark);
    if (ec) return;
  }
  if (to_device && from_device) {
    ec = copier->copy_within(into, from, size);
  } else {
    ec = to_device ? copier->copy_in(into, from, size) : copier->copy_out(into, from, size);
  }
}

void copy_memory(void* into, const void* from, std::size_t size, void* cuda_stream) {
  std::error_code ec;
  copy_memory(into, from, size, ec, cuda_stream);
  if (ec) throw error(ec, "copying " + std::to_string(size) + " bytes from or to a device");
}

}  // namespace ucx
