#pragma once

#include <chrono>
#include <cstdint>
#include <system_error>

#include "ucx/error.hpp"
#include "ucx/export.hpp"
#include "ucx/file_descriptor.hpp"
#include "ucx/old_option.hpp"
#include "ucx/url.hpp"

namespace ucx {

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
