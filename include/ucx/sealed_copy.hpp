#pragma once

#include <chrono>
#include <cstdint>
#include <system_error>

#include "ucx/export.hpp"
#include "ucx/file_descriptor.hpp"
#include "ucx/url.hpp"

namespace ucx {

class remote_region;

/// How something is copied into memory of this machine.
struct sealed_copy_options {
  /// What is longer is not copied.
  std::uint64_t most = std::uint64_t{1} << 30U;
  /// How long each transfer of a MiB may take; zero means the worker's `operation_timeout`.
  std::chrono::nanoseconds timeout = std::chrono::nanoseconds::zero();
};

/// Copies all of what is published at `name`, or of `region`, into a file in memory (`memfd`), and
/// returns a descriptor of it, for code that needs one: it can be read, seeked and mapped, handed
/// to a child, and opened by name as /proc/self/fd/N. Nobody can change it any more. It has
/// position 0, and is closed by `exec`.
/// Completes: when all of it is there. Errors: no_space (it is longer than `most`), no_memory,
/// too_many_files, bad_url (without a name); those of `client::open` and `remote_region::read_at`,
/// and then nothing is left of it.
UCXIO_EXPORT file_descriptor sealed_copy(const url& name, const sealed_copy_options& options = {});
UCXIO_EXPORT file_descriptor sealed_copy(const url& name, const sealed_copy_options& options,
                                         std::error_code& ec);
UCXIO_EXPORT file_descriptor sealed_copy(const remote_region& region,
                                         const sealed_copy_options& options = {});
UCXIO_EXPORT file_descriptor sealed_copy(const remote_region& region,
                                         const sealed_copy_options& options, std::error_code& ec);

}  // namespace ucx
