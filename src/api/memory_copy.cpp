#include "ucx/memory_resources.hpp"

#include <chrono>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/deadline.hpp"
#include "base/result.hpp"
#include "cuda/device_copiers.hpp"
#include "cuda/device_pointer.hpp"
#include "cuda/timed_copy.hpp"
#include "ucx/error.hpp"

namespace ucx {
namespace {

constexpr std::chrono::seconds usual_timeout{30};

/// The copiers of this thread. Those of contexts of the program's go with the call.
class thread_copiers {
 public:
  thread_copiers() = default;
  thread_copiers(const thread_copiers&) = delete;
  thread_copiers& operator=(const thread_copiers&) = delete;
  ~thread_copiers() { kept().drop_borrowed(); }

  std::shared_ptr<detail::device_copier> of(const void* address, std::error_code& ec) {
    return kept().of(address).or_tell(ec);
  }

 private:
  /// Ends with the thread, and waits then for copies that run, but not for ever.
  static detail::device_copiers& kept() {
    thread_local detail::device_copiers own;
    return own;
  }
};

void copy(void* into, const void* from, std::size_t size, const io_options& options,
          std::error_code& ec) {
  if (size == 0) return;
  const bool to_device = detail::is_on_device({static_cast<const std::byte*>(into), size}, ec);
  const bool from_device = detail::is_on_device({static_cast<const std::byte*>(from), size}, ec);
  if (ec) return;
  if (!to_device && !from_device) {
    std::memcpy(into, from, size);
    return;
  }
  const auto limit = options.timeout.count() > 0 ? options.timeout : usual_timeout;
  const detail::clock::time_point until = detail::after(detail::clock::now(), limit);
  thread_copiers copiers;
  const auto copier = copiers.of(to_device ? into : from, ec);
  // The other one has to be somewhere, too.
  if (!ec && to_device && from_device) copiers.of(from, ec);
  detail::copy_terms terms{until};
  if (!ec && options.cuda_stream != nullptr) {
    terms.after = detail::stream_mark::of(copier->context(), options.cuda_stream).or_tell(ec);
  }
  if (ec) return;
  if (to_device && from_device) {
    ec = detail::copy_within_devices(*copier, into, from, size, terms);
  } else if (to_device) {
    const std::span host(static_cast<const std::byte*>(from), size);
    ec = detail::copy_to_device(*copier, into, host, terms);
  } else {
    const std::span host(static_cast<std::byte*>(into), size);
    ec = detail::copy_from_device(*copier, host, from, terms);
  }
}

}  // namespace

bool detail::asks_driver(const void* address, std::size_t size,
                         std::error_code& misplaced) noexcept {
  return driver_copies({static_cast<const std::byte*>(address), size}, misplaced);
}

void copy_memory(void* into, const void* from, std::size_t size, const io_options& options,
                 std::error_code& ec) {
  std::error_code outcome;
  copy(into, from, size, options, outcome);
  detail::end_with(outcome, ec, [size] {
    return "copying " + std::to_string(size) + " bytes from or to a device";
  });
}

}  // namespace ucx
