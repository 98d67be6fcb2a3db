#pragma once

#include <chrono>
#include <cstddef>
#include <stop_token>
#include <string_view>

#include "ucx/context.hpp"
#include "ucx/enumeration_text.hpp"
#include "ucx/export.hpp"

namespace ucx {

/// What a writer to many readers does when one of them does not take its bytes.
enum class slow_reader {
  wait,  ///< Waits for it: all readers go as fast as the slowest.
  drop,  ///< Drops it when one message has waited for it for `pipe_options::patience`.
};

/// Returns the name of the enumerator.
UCXIO_EXPORT std::string_view to_string(slow_reader value) noexcept;

/// How a pipe is opened. `docs/reference/pipes.md` is its contract.
struct pipe_options {
  /// Of the reader: so many bytes of each writer at most may be on their way, or wait in the
  /// reader's memory, counting 256 for each message; then the writer waits. Of a writer: it has no
  /// more on its way than this, or 8 MiB if that is more. From `least_window` to `most_window`.
  std::size_t window = std::size_t{8} << 20U;
  /// How long one wait for more to read, or one write, flush or close in all, may take; the pipe
  /// goes on behind it. Zero: as long as the other process lives.
  std::chrono::nanoseconds timeout = std::chrono::nanoseconds::zero();
  /// How long the other process may be silent while something waits for it, until it counts as
  /// dead. Of what is opened by URL; else the worker's `heartbeat_timeout` counts.
  std::chrono::nanoseconds silence = std::chrono::seconds(5);
  /// How long opening waits for the other side to come.
  std::chrono::nanoseconds meeting = std::chrono::seconds(30);
  /// When a stop is requested, from any thread, what waits ends with `errc::canceled`, and so does
  /// whatever would wait later.
  std::stop_token stop = {};
  /// Of a reader: how many writers it waits for, whose bytes it reads in turns.
  std::size_t writers = 1;
  /// Of a writer: how many readers it waits for, each of which gets every byte.
  std::size_t readers = 1;
  slow_reader slow = slow_reader::wait;
  std::chrono::nanoseconds patience = std::chrono::seconds(5);
  /// UCX's transports, devices and configuration, of what is opened by URL.
  context_options context = {};

  static constexpr std::size_t least_window = std::size_t{64} << 10U;
  static constexpr std::size_t most_window = std::size_t{1} << 30U;
  static constexpr std::size_t most_peers = 1024;
};

}  // namespace ucx
