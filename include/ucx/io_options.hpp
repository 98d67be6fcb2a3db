#pragma once

#include <chrono>

namespace ucx {

/// The options of one operation.
struct io_options {
  /// How long the operation may take. Zero means the worker's `operation_timeout`.
  std::chrono::nanoseconds timeout = std::chrono::nanoseconds::zero();
  /// Checks reads (not writes). The owner sends a checksum (XXH3-128) with each piece of at most a
  /// segment. A piece that does not match is asked for again, twice. Then the read fails with
  /// `checksum_mismatch`, and the text names the bytes. Such reads go by message, whatever the
  /// region's way. Memory that is written during the read may not match.
  /// Errors: not_supported (the owner's version sends none, or the memory is a device's),
  /// feature_disabled (the context was made without feature::am).
  bool verify = false;
  /// A CUDA stream of the program (a `CUstream`, or a `cudaStream_t`), if this side's memory is a
  /// CUDA device's. The device copies from or to the memory after all work that was enqueued on
  /// that stream before the call. The calling thread does not wait for that work. Work that is
  /// enqueued after the operation is done finds the bytes of a read in place, and may overwrite
  /// those of a write. Work that is enqueued in between is not ordered. Null means no stream. The
  /// default streams are CU_STREAM_LEGACY (1) and CU_STREAM_PER_THREAD (2). Host memory ignores it.
  /// Lifetime: the call.
  /// Errors: invalid_argument (the stream is of another context than the memory).
  void* cuda_stream = nullptr;
};

}  // namespace ucx
