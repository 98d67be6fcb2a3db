// What an operation borrows from Python, until UCX has let go of it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include "foreign_memory.hpp"

namespace ucxio_python {

/// Gives back what was left behind and is not in use any more.
/// REQUIRES: the GIL, which it may release.
void give_back() noexcept;

/// The use that an operation makes of a buffer.
enum class use {
  read,   ///< The bytes are read: any C-contiguous buffer.
  write,  ///< The bytes are written: the buffer has to be writable, too.
};

/// Owns references to Python's objects, and views of their buffers.
/// REQUIRES: all members, the destructor included, are called with the GIL.
class borrowed {
 public:
  borrowed() = default;
  borrowed(borrowed&&) noexcept = default;
  borrowed& operator=(borrowed&&) noexcept = default;

  /// Takes a view of the buffer of `object`, and returns its bytes. Of an object without one it
  /// takes what the CUDA array interface or DLPack tell: memory of a device, too.
  /// Errors: TypeError (no buffer, or a read-only one to be written), ValueError (its layout is not
  /// C-contiguous; the text has shape and strides; memory of another stream than an earlier one's),
  /// and those of `foreign_memory`.
  std::span<std::byte> take_buffer(nanobind::handle object, use wanted);
  /// Returns the CUDA stream that the program uses the memory on; null without one.
  void* cuda_stream() const noexcept { return stream_; }
  /// Takes a reference.
  void take(nanobind::object object) { objects_.push_back(std::move(object)); }
  /// Keeps an object of C++, which `give_back` lets go of without the GIL.
  void keep(std::shared_ptr<void> value) { values_.push_back(std::move(value)); }
  /// Makes an object that lives as long.
  template <class Value>
  Value& make() {
    auto made = std::make_shared<Value>();
    keep(made);
    return *made;
  }

 private:
  friend void give_back() noexcept;
  struct releaser {
    void operator()(Py_buffer* view) const noexcept;
  };
  std::vector<std::unique_ptr<Py_buffer, releaser>> views_;
  std::span<std::byte> take_foreign(nanobind::handle object, foreign_memory&& found, use wanted);
  std::vector<nanobind::object> objects_;
  std::vector<std::shared_ptr<void>> values_;
  void* stream_ = nullptr;
};

/// Owns what an operation borrowed that its caller gave up. It may go on any thread, without the
/// GIL: the next call of Python's gives the objects back.
class left_behind {
 public:
  explicit left_behind(borrowed&& kept);
  left_behind(left_behind&&) noexcept = default;
  left_behind& operator=(left_behind&&) = delete;
  ~left_behind();

 private:
  std::unique_ptr<borrowed> kept_;
};

/// Returns how many sets of objects are left behind now: in use by UCX, or not given back yet.
std::size_t count_left_behind() noexcept;

/// Ends the giving back: the interpreter goes.
void stop_giving_back() noexcept;

}  // namespace ucxio_python
