#include "cuda/timed_copy.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

#include "cuda/waited_copy.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

constexpr std::size_t longest_part = std::size_t{1} << 20U;

/// A copy through a buffer that it owns.
class timed_copy final : public waited_copy {
 public:
  explicit timed_copy(std::size_t size)
      : bytes_(std::make_unique_for_overwrite<std::byte[]>(size)) {}

  /// Returns that buffer, which the driver copies to or from.
  std::byte* bytes() const noexcept { return bytes_.get(); }

  std::error_code begin(device_copier& by, const std::shared_ptr<device_copy>& self,
                        std::shared_ptr<const void> keeps) noexcept {
    begin_again(std::move(keeps));
    return by.start(self);
  }

 private:
  const std::unique_ptr<std::byte[]> bytes_;
};

/// Two pieces in turns: the processor copies one while the device has the other.
class piecewise_copy {
 public:
  piecewise_copy(device_copier& by, bool into_device, const copy_terms& terms) noexcept
      : by_(by), into_device_(into_device), terms_(terms), after_(terms.after) {}

  std::error_code run(std::byte* device, std::span<std::byte> host) {
    while (!host.empty() && !failed_) {
      turn& next = turns_[number_++ % turns_.size()];
      finish(next);
      if (failed_) break;
      const std::span<std::byte> part = host.first(std::min(host.size(), longest_part));
      begin(next, device, part);
      device += part.size();
      host = host.subspan(part.size());
    }
    finish(turns_[number_ % turns_.size()]);
    finish(turns_[(number_ + 1) % turns_.size()]);
    return failed_;
  }

 private:
  struct turn {
    std::shared_ptr<timed_copy> copy;
    std::span<std::byte> host;  // empty: it is not under way
  };

  void begin(turn& next, std::byte* device, std::span<std::byte> host) {
    if (!next.copy) next.copy = std::make_shared<timed_copy>(host.size());
    timed_copy& copy = *next.copy;
    copy.device = device;
    copy.host = {copy.bytes(), host.size()};
    copy.into_device = into_device_;
    copy.after = std::exchange(after_, nullptr);  // what follows is behind the first
    if (into_device_) std::memcpy(copy.bytes(), host.data(), host.size());
    failed_ = copy.begin(by_, next.copy, terms_.keeps);
    if (!failed_) next.host = host;
  }
  void finish(turn& begun) noexcept {
    const std::span<std::byte> host = std::exchange(begun.host, {});
    if (host.empty()) return;
    const std::error_code ec = begun.copy->wait(terms_.until);
    if (!failed_) failed_ = ec;
    if (!ec && !into_device_) std::memcpy(host.data(), begun.copy->bytes(), host.size());
  }

  device_copier& by_;
  const bool into_device_;
  const copy_terms& terms_;
  std::shared_ptr<const stream_mark> after_;
  std::array<turn, 2> turns_;
  std::size_t number_ = 0;
  std::error_code failed_;
};

}  // namespace

std::error_code copy_to_device(device_copier& by, void* device, std::span<const std::byte> from,
                               const copy_terms& terms) noexcept {
  try {
    // It is not written to: the direction says so.
    const std::span host(const_cast<std::byte*>(from.data()), from.size());
    return piecewise_copy(by, true, terms).run(static_cast<std::byte*>(device), host);
  } catch (const std::bad_alloc&) {
    return errc::no_memory;
  }
}

std::error_code copy_from_device(device_copier& by, std::span<std::byte> into, const void* device,
                                 const copy_terms& terms) noexcept {
  try {
    auto* const from = static_cast<std::byte*>(const_cast<void*>(device));
    return piecewise_copy(by, false, terms).run(from, into);
  } catch (const std::bad_alloc&) {
    return errc::no_memory;
  }
}

std::error_code copy_within_devices(device_copier& by, void* into, const void* from,
                                    std::size_t size, const copy_terms& terms) noexcept {
  try {
    const auto copy = std::make_shared<timed_copy>(0);
    copy->device = static_cast<std::byte*>(into);
    copy->host = {static_cast<std::byte*>(const_cast<void*>(from)), size};
    copy->into_device = copy->within_devices = true;
    copy->after = terms.after;
    const std::error_code ec = copy->begin(by, copy, terms.keeps);
    return ec ? ec : copy->wait(terms.until);
  } catch (const std::bad_alloc&) {
    return errc::no_memory;
  }
}

}  // namespace ucx::detail
