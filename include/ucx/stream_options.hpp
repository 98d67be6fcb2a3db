#pragma once

#include <chrono>
#include <cstddef>

namespace ucx {

/// How a stream over remote memory buffers.
struct stream_options {
  /// Bytes of one buffer, and of one transfer of read-ahead or write-behind at most.
  std::size_t buffer_size = std::size_t{1} << 20U;
  /// Transfers in flight at most, in either direction; `window` limits their bytes. 1 turns
  /// read-ahead off.
  std::size_t depth = 1024;
  /// How long each transfer, and each flush, may take; zero means the worker's `operation_timeout`.
  std::chrono::nanoseconds timeout = std::chrono::nanoseconds::zero();
  /// Bytes in flight at most, both directions together; the buffers of a stream hold so many, and
  /// two buffers more. How many of them are used follows bandwidth times delay
  /// (`docs/how-to/tuning.md`). From `least_window` to `most_window`; opening a stream with another
  /// is `invalid_argument`.
  std::size_t window = std::size_t{16} << 20U;
  /// How long a read at the end of a file waits for the file to become longer; when nothing came in
  /// that time, it is the end of the file. Of streams that were opened by URL, or by client and
  /// name; memory has the size that it has, and ends at once. Negative counts as zero.
  std::chrono::nanoseconds follow = std::chrono::nanoseconds::zero();
  /// For how long a stream that was opened by URL, or by client and name, tries to have its
  /// connection back when that is lost, at least once; zero: not at all. A read goes on where it
  /// was, if there is the same content; writing goes on after `clear()`
  /// (`docs/reference/streams.md`, "When the connection is lost"). An attempt that has begun may
  /// take its connect time-out.
  std::chrono::nanoseconds reconnect = std::chrono::nanoseconds::zero();

  /// Has what is read checked as `io_options::verify` says; what is written is not: read it back. A
  /// region that is mapped is then read by message, too. A local path ignores it.
  bool verify = false;

  /// Of reads into, and writes out of, memory of a CUDA device: as `io_options::cuda_stream` says;
  /// bytes that are in the stream's buffer, or fit it, are copied by the calling thread, which then
  /// waits for that work. Lifetime: the stream's. A local path ignores it.
  void* cuda_stream = nullptr;

  /// Over how many connections at most the stream reads: each further one has a worker
  /// and a thread of its own here (`client::lane`), so that receiving and copying use a core each.
  /// Of streams that were opened by URL, or by client and name, to be read only; what
  /// is mapped, and files that are followed, use one. Those that
  /// can not be had are done without. From 1 to `most_lanes`; opening a stream with another number
  /// is `invalid_argument`. A local path ignores it.
  std::size_t lanes = 1;

  static constexpr std::size_t least_window = std::size_t{4} << 10U;
  static constexpr std::size_t most_window = std::size_t{1} << 40U;
  static constexpr std::size_t most_lanes = 64;
};

}  // namespace ucx
