// A mark behind the work that was enqueued on a stream of the program's up to now.
#pragma once

#include <memory>
#include <utility>

#include "base/result.hpp"
#include "cuda/cuda_context.hpp"

namespace ucx::detail {

/// An event of the driver's. Threads: sharing one object is safe.
class stream_mark {
 public:
  /// Marks the work on `stream`, which is of `context`. Errors: invalid_argument (it is not),
  /// no_memory, io_error.
  static result<std::shared_ptr<const stream_mark>> of(std::shared_ptr<const cuda_context> context,
                                                       void* stream);
  stream_mark(const stream_mark&) = delete;
  stream_mark& operator=(const stream_mark&) = delete;
  ~stream_mark();

  cuda::event event() const noexcept { return event_; }

 private:
  explicit stream_mark(std::shared_ptr<const cuda_context> context) noexcept
      : context_(std::move(context)) {}

  const std::shared_ptr<const cuda_context> context_;
  cuda::event event_ = nullptr;
};

}  // namespace ucx::detail
