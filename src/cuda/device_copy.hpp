// One copy from or to memory of a device, which a copier's thread sees to.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <system_error>

#include "cuda/stream_mark.hpp"

namespace ucx::detail {

class staging_buffer;

/// Keeps what it copies from and to until the driver has let go of it, however long that is. The
/// caller may have gone by then.
class device_copy {
 public:
  device_copy() noexcept = default;
  device_copy(const device_copy&) = delete;
  device_copy& operator=(const device_copy&) = delete;
  virtual ~device_copy() = default;

  std::byte* device = nullptr;
  std::span<std::byte> host = {};
  bool into_device = false;
  bool within_devices = false;               ///< `host` is a device's as well.
  bool zeroes = false;                       ///< `device` gets zeros, as many as `host` is long.
  staging_buffer* staging = nullptr;         ///< The buffer that `host` is in, to be pinned first.
  std::shared_ptr<const stream_mark> after;  ///< Work of the program's that comes before, if any.
  /// How it ended: written before `done()`. canceled: it was not begun.
  std::error_code error;

  /// Returns whether somebody still waits for it. From any thread.
  virtual bool wanted() const noexcept { return true; }
  /// Called before it begins, with the copier's context current: `device` may be found out here. An
  /// error that is returned ends it. On the copier's thread, once.
  virtual std::error_code prepare() noexcept { return {}; }
  /// It has ended, or will not be begun. On the copier's thread, once.
  virtual void done() noexcept = 0;
};

}  // namespace ucx::detail
