#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory_resource>
#include <string_view>
#include <system_error>

#include "ucx/error.hpp"
#include "ucx/export.hpp"
#include "ucx/memory_kind.hpp"
#include "ucx/to_string.hpp"

namespace ucx {

/// The choice of a receive that finds no resource for the kind of the sender's memory.
enum class missing_resource {
  fallback,  ///< Uses the resource for the host's memory.
  strict,    ///< Fails with `errc::not_supported`.
};

template <>
UCXIO_EXPORT std::string_view detail::enum_name(missing_resource value) noexcept;

/// The resource for each kind of memory, and the function that copies its bytes. It is for code
/// that allocates and copies in memory of any kind, also of kinds that this library does not know.
/// Threads: while one thread adds, no other may use it.
class UCXIO_EXPORT memory_resources {
 public:
  /// Copies `size` bytes from or to memory of the kind. Returns why it failed.
  using copy_function =
      std::function<std::error_code(void* into, const void* from, std::size_t size)>;

  /// Makes an object with `std::pmr::new_delete_resource()` for the host, and no other resource.
  memory_resources() noexcept;

  /// Sets the resource for `kind`, and the function that copies it. Without `copy` the library
  /// copies by itself. Replaces an earlier resource of `kind`.
  /// Lifetime: `resource`, until it is replaced or this object is gone.
  void add(memory_kind kind, std::pmr::memory_resource& resource, copy_function copy = {});

  /// Returns the resource for `kind`, or null.
  std::pmr::memory_resource* find(memory_kind kind) const noexcept;

  /// Copies `size` bytes from memory of the kind `source` to memory of the kind `target`. The
  /// function of `target` does it, else that of `source`. Without either, the CUDA driver does it
  /// if one is a device's or managed, else the processor.
  /// Completes: when the bytes are there.
  /// Errors: not_supported (a kind that has no function and that the library can not copy),
  /// invalid_argument (memory that is not of the kind that it is said to be), io_error, the error
  /// of the function.
  void copy(void* into, memory_kind target, const void* from, memory_kind source, std::size_t size,
            std::error_code& ec = throws) const;

 private:
  struct resource_of_kind {
    memory_kind kind = memory_kind::host;
    std::pmr::memory_resource* resource = nullptr;
    copy_function copy = {};
  };
  const resource_of_kind* found(memory_kind kind) const noexcept;

  // Host, CUDA's three, ROCm, and all others as one.
  std::array<resource_of_kind, 6> known_;
};

}  // namespace ucx
