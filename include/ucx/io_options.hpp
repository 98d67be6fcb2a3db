#pragma once

#include <chrono>

namespace ucx {

/// How one operation is done.
struct io_options {
  /// How long the operation may take; zero means the worker's `operation_timeout`.
  std::chrono::nanoseconds timeout = std::chrono::nanoseconds::zero();
  /// Of reads (writes are not checked): the owner sends a checksum (XXH3-128) with each piece of at
  /// most a segment, and what does not match is asked for again, twice; then the read fails with
  /// `damaged_on_the_way`, and its text says which bytes. Goes by message, whatever the region's
  /// way. Memory that is written while it is read may not match. Errors: not_supported (the owner
  /// is of a version that sends none, or the memory is a device's), feature_disabled (the context
  /// was made without feature::am).
  bool verify = false;
  /// Where this side's memory is a CUDA device's: a stream of the program's there (a `CUstream`,
  /// which a `cudaStream_t` is too). The device copies from or to the memory behind all work that
  /// was enqueued on that stream before the call; the calling thread waits for none of it. What is
  /// enqueued once the operation is done finds the bytes of a read in place, and may overwrite
  /// those of a write; what is enqueued in between is not ordered. Null: no stream; the default
  /// ones are CU_STREAM_LEGACY (1) and CU_STREAM_PER_THREAD (2). Memory of the host ignores it.
  /// Lifetime: the call. Errors: invalid_argument (the stream is of another context than the
  /// memory).
  void* cuda_stream = nullptr;
};

}  // namespace ucx
