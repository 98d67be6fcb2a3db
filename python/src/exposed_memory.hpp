// Memory that other programs reach by UCX's key, for Python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <nanobind/nanobind.h>
#include <ucx/memory_region.hpp>

#include "borrowed.hpp"
#include "plain_context.hpp"

namespace ucxio_python {

/// A buffer of Python's, or memory of the library's, which UCX knows.
class exposed_memory_object {
 public:
  /// Exposes the bytes of a buffer. UCX's keys carry no rights: peers may write them.
  /// Errors: TypeError (the buffer is read-only, or there is none).
  static exposed_memory_object map(const plain_context_object& of, nanobind::handle buffer);
  /// Exposes memory that the library allocates.
  static exposed_memory_object allocate(const plain_context_object& of, std::size_t size);
  exposed_memory_object(exposed_memory_object&&) noexcept = default;
  exposed_memory_object& operator=(exposed_memory_object&&) = delete;
  ~exposed_memory_object();

  std::uintptr_t address() const noexcept { return address_; }
  std::size_t length() const noexcept { return length_; }
  /// Returns UCX's packed key. That of no bytes is empty.
  /// Errors: not_supported (memory that UCX has no key for: of a device), closed.
  nanobind::bytes key() const;
  std::uintptr_t native_handle() const;
  /// Takes the memory back. The buffer is the program's again. Idempotent.
  void close();

 private:
  explicit exposed_memory_object(std::unique_ptr<ucx::memory_region> made, borrowed&& lent);

  borrowed lent_;
  std::unique_ptr<ucx::memory_region> region_;
  std::uintptr_t address_ = 0;
  std::size_t length_ = 0;
};

void add_exposed_memory(nanobind::module_& module);

}  // namespace ucxio_python
