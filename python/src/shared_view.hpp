// Memory of the library's, as a buffer of Python's.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>

#include <nanobind/nanobind.h>

namespace ucxio_python {

/// Counts the buffers that Python has of some memory. While there are any, it can not go.
class lent_memory {
 public:
  bool is_lent() const noexcept { return buffers_ > 0; }
  /// Fails while there are buffers.
  /// Errors: BufferError.
  void refuse_if_lent(const char* doing) const;

 private:
  friend class shared_view;
  std::atomic<std::size_t> buffers_ = 0;
};

/// Returns a memoryview of `bytes`. `owner` is kept until it goes. A `count` is in `owner`.
/// REQUIRES: the GIL.
nanobind::object make_memoryview(std::span<std::byte> bytes, bool writable,
                                 std::shared_ptr<void> owner, lent_memory& count);

void add_shared_view(nanobind::module_& module);

}  // namespace ucxio_python
