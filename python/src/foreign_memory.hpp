// Memory of other packages' arrays: by the CUDA array interface, and by DLPack.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include <nanobind/nanobind.h>

namespace ucxio_python {

/// The memory of an array, and what keeps it.
struct foreign_memory {
  std::span<std::byte> bytes;
  bool is_read_only = false;
  /// The CUDA stream that the program's work on the memory is enqueued on; null without one. Where
  /// the interface does not tell, in version 2, it is the legacy default stream.
  void* stream = nullptr;
  nanobind::object owner;
};

/// Returns the memory of an object with `__cuda_array_interface__`, versions 2 and 3; nothing of
/// another object.
/// Errors: TypeError (items that are objects or bits), ValueError (another version; a malformed
/// interface; a layout that is not C-contiguous, with its shape and strides; memory that the CUDA
/// driver does not know).
std::optional<foreign_memory> cuda_array_of(nanobind::handle object);

/// Likewise of an object with `__dlpack__` and `__dlpack_device__`. For memory of a device the
/// legacy default stream waits for the object's own.
/// Errors: those of `cuda_array_of`; TypeError (another kind of device), BufferError (the object
/// does not export its memory without a copy), and what the object raises.
std::optional<foreign_memory> dlpack_of(nanobind::handle object);

/// Waits until the work that was enqueued on a stream is done, for operations that take no stream.
/// Null is none. Without the GIL.
void wait_for_stream(std::span<const std::byte> bytes, void* stream);

}  // namespace ucxio_python
