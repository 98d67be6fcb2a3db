#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory_resource>
#include <string_view>
#include <system_error>

#include "ucx/enumeration_text.hpp"
#include "ucx/export.hpp"
#include "ucx/memory_kind.hpp"

namespace ucx {

/// What a receive does that finds no resource for the kind of the sender's memory.
enum class missing_resource {
  fallback,  ///< Takes that for the host's memory.
  strict,    ///< Fails with `errc::not_supported`.
};

/// Returns the name of the enumerator.
UCXIO_EXPORT std::string_view to_string(missing_resource value) noexcept;

/// Which resource stands for each kind of memory, and how its bytes are copied: for code that
/// allocates and copies wherever it is told to, also kinds that this library knows nothing of.
/// Threads: none may use it while another one adds.
class UCXIO_EXPORT memory_resources {
 public:
  /// Copies `size` bytes, from or to memory of its kind; returns why it did not.
  using copy_function =
      std::function<std::error_code(void* into, const void* from, std::size_t size)>;

  /// Makes one that has `std::pmr::new_delete_resource()` for the host, and nothing else.
  memory_resources() noexcept;

  /// Has `resource` stand for `kind`, and `copy` copy it: before what the library does itself,
  /// which is what happens without a `copy`. Replaces what stood for it. Lifetime: `resource`,
  /// until it is replaced or this is gone.
  void add(memory_kind kind, std::pmr::memory_resource& resource, copy_function copy = {});

  /// Returns what stands for `kind`, or nobody.
  std::pmr::memory_resource* find(memory_kind kind) const noexcept;

  /// Copies `size` bytes from memory of the kind `source` to memory of the kind `target`: by the
  /// function of the target's kind, else that of the source's, else by the CUDA driver if one is a
  /// device's or managed, else by the processor.
  /// Completes: when the bytes are there.
  /// Errors: not_supported (a kind that nobody can copy), invalid_argument (memory that is not of
  /// the kind that it is said to be), io_error, what the function returned.
  void copy(void* into, memory_kind target, const void* from, memory_kind source, std::size_t size,
            std::error_code& ec) const;
  void copy(void* into, memory_kind target, const void* from, memory_kind source,
            std::size_t size) const;

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
