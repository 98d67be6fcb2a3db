// Descriptors of the system, for code that needs one.
#pragma once

#include <chrono>
#include <cstdint>
#include <system_error>
#include <utility>

#include "ucx/error.hpp"
#include "ucx/old_option.hpp"
#include "ucx/url.hpp"
#include "ucx/version.hpp"

namespace ucx {

/// A descriptor of the system that is closed with this object.
class UCXIO_EXPORT file_descriptor {
 public:
  /// Holds no descriptor.
  file_descriptor() noexcept = default;
  /// Owns `opened` from now on; -1 is no descriptor.
  explicit file_descriptor(int opened) noexcept : descriptor_(opened) {}
  file_descriptor(file_descriptor&& other) noexcept : descriptor_(other.release()) {}
  file_descriptor& operator=(file_descriptor&& other) noexcept;
  ~file_descriptor();

  explicit operator bool() const noexcept { return descriptor_ >= 0; }
  /// Returns the descriptor, or -1.
  /// Lifetime: this object's.
  int get() const noexcept { return descriptor_; }
  /// Returns the descriptor, and leaves it to the caller.
  int release() noexcept { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;
};

class remote_region;

/// The options of a copy.
struct copy_to_memfd_options {
  /// For one version: `max_size`.
  detail::old_option<std::uint64_t> most = {};
  /// Content that is longer is not copied.
  std::uint64_t max_size = most.value_or(std::uint64_t{1} << 30U);
  /// How long each transfer of a MiB may take. Zero means the worker's `operation_timeout`.
  std::chrono::nanoseconds timeout = std::chrono::nanoseconds::zero();
};

/// Copies all bytes of the published name, or of `region`, into a file in memory (`memfd`). Returns
/// a descriptor of it, for code that needs one. It can be read, seeked and mapped, handed to a
/// child, and opened by name as /proc/self/fd/N. Its content can not be changed any more. It has
/// position 0, and `exec` closes it.
/// Completes: when all bytes are there.
/// Errors: no_space (longer than `max_size`), no_memory, too_many_files, bad_url (without a name);
/// those of `client::open` and `remote_region::read_at`. Then nothing is left of the file.
UCXIO_EXPORT file_descriptor copy_to_memfd(const url& name,
                                           const copy_to_memfd_options& options = {},
                                           std::error_code& ec = throws);
UCXIO_EXPORT file_descriptor copy_to_memfd(const remote_region& region,
                                           const copy_to_memfd_options& options = {},
                                           std::error_code& ec = throws);

}  // namespace ucx
