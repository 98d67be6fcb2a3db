// A gate that holds back the work that a program enqueues on a CUDA stream, until an operation has
// ended.
#pragma once

#include <memory>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "cuda/stream_wait_value_pool.hpp"

namespace ucx::detail {

/// Shut from the beginning, and opened when it goes, or its time is over. No call of the driver's
/// is made then.
class stream_wait_value {
 public:
  /// Has what is enqueued on `stream` from now on wait for the gate. Errors: not_supported (the
  /// driver has no such thing, or was left behind by fork()), invalid_argument (no stream, or one
  /// that captures a graph), busy, no_memory, io_error.
  static result<std::unique_ptr<stream_wait_value>> shut(const cuda_driver& driver, void* stream,
                                                         clock::time_point until);
  stream_wait_value(const stream_wait_value&) = delete;
  stream_wait_value& operator=(const stream_wait_value&) = delete;
  ~stream_wait_value();

  /// Returns whether the stream is still held; then it is until this goes, however late that is.
  bool claim() noexcept { return keeper_->claim(gate_); }

  std::unique_ptr<stream_wait_value> next;  ///< Of the same operation.

 private:
  stream_wait_value() noexcept = default;
  result<void> hold(const cuda_driver& driver, cuda::stream stream);

  stream_wait_value_pool* keeper_ = nullptr;
  stream_wait_value_pool::gate gate_;
};

}  // namespace ucx::detail
