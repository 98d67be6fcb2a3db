// A CUDA context that calls are made in, on any thread.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "cuda/cuda_driver.hpp"

namespace ucx::detail {

/// The owner of memory: the context, if any, and the device.
struct cuda_owner {
  cuda::context context = nullptr;
  int device = -1;
};

/// A device's primary context, retained; or one of the program's, which may end at any time: calls
/// in it fail then. Threads: sharing one object is safe.
class cuda_context {
 public:
  /// Initialises CUDA, unless it is, and takes the primary context of `device`; -1: of the first.
  /// Errors: not_supported (no driver, no such device, a child that was forked), no_memory,
  /// io_error.
  static result<std::shared_ptr<const cuda_context>> of_device(int device);
  /// Asks whose the memory at `address` is. Errors: not_supported (the driver can not tell),
  /// io_error (it has no owner, by now).
  static result<cuda_owner> owner_of(const void* address);
  /// Takes its context; what was allocated from a pool of the driver's, and belongs to none, is
  /// reached from its device's. Errors: as of_device().
  static result<std::shared_ptr<const cuda_context>> of_owner(const cuda_owner& owner);
  /// Both. Errors: the same.
  static result<std::shared_ptr<const cuda_context>> of_address(const void* address);
  /// Takes that of `stream`, which may be one of the default ones of the thread's current context;
  /// it is not kept. Errors: invalid_argument (no stream, no such context), not_supported,
  /// io_error.    REQUIRES: `driver.holds_streams()`.
  static result<std::shared_ptr<const cuda_context>> of_stream(const cuda_driver& driver,
                                                               cuda::stream stream);
  /// Takes the primary context of `device` if somebody uses it; nothing otherwise.
  static std::shared_ptr<const cuda_context> primary_in_use(int device) noexcept;
  cuda_context(const cuda_context&) = delete;
  cuda_context& operator=(const cuda_context&) = delete;
  ~cuda_context();

  const cuda_driver& driver() const noexcept { return *driver_; }
  cuda::context handle() const noexcept { return handle_; }
  int device() const noexcept { return device_; }
  /// Returns whether it stays as long as this does: it is no program's own.
  bool is_retained() const noexcept { return retained_ >= 0; }

 private:
  cuda_context(const cuda_driver& driver, int device) noexcept
      : driver_(&driver), device_(device) {}

  const cuda_driver* driver_;
  cuda::context handle_ = nullptr;
  int device_;
  cuda::device retained_ = -1;
};

/// Lets calls of this thread be made while any thread captures a graph. Without it they would fail,
/// and end the capture if that is a global one. They use no stream of the program's, so they are
/// never part of what is captured.
class beside_captures {
 public:
  explicit beside_captures(const cuda_driver& driver) noexcept
      : driver_(driver), exchanged_(driver.exchange_capture_mode(&mode_) == cuda::success) {}
  beside_captures(const beside_captures&) = delete;
  beside_captures& operator=(const beside_captures&) = delete;
  ~beside_captures() {
    // Before CUDA was initialised there was nothing to exchange, and there may be now.
    if (exchanged_) driver_.exchange_capture_mode(&mode_);
  }

 private:
  const cuda_driver& driver_;
  int mode_ = cuda::capture_relaxed;  // then the thread's own
  const bool exchanged_;
};

/// Makes a context current on this thread, until it ends; then the previous one is again.
class current_context {
 public:
  explicit current_context(const cuda_context& wanted) noexcept
      : driver_(wanted.driver()),
        beside_captures_(driver_),
        result_(driver_.context_push(wanted.handle())) {}
  current_context(const current_context&) = delete;
  current_context& operator=(const current_context&) = delete;
  ~current_context() {
    cuda::context popped = nullptr;
    if (result_ == cuda::success) driver_.context_pop(&popped);
  }
  /// Returns why it is not, if so.
  cuda::result result() const noexcept { return result_; }

 private:
  const cuda_driver& driver_;
  const beside_captures beside_captures_;
  const cuda::result result_;
};

}  // namespace ucx::detail
