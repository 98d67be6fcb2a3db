#pragma once

#include <chrono>
#include <cstddef>
#include <stop_token>
#include <string_view>

#include "ucx/context.hpp"
#include "ucx/export.hpp"
#include "ucx/old_option.hpp"
#include "ucx/to_string.hpp"

namespace ucx {

/// The choice of a writer with many readers when one of them does not take its bytes.
enum class slow_reader_policy {
  wait,  ///< Waits for that reader: all readers are as fast as the slowest.
  drop,  ///< Drops that reader when one message has waited for `pipe_options::slow_reader_timeout`.
};

template <>
inline std::string_view detail::enum_name(slow_reader_policy value) noexcept {
  switch (value) {
    case slow_reader_policy::wait:
      return "wait";
    case slow_reader_policy::drop:
      return "drop";
  }
  return "unknown";
}

/// How a pipe is opened. `docs/reference/pipes.md` is its contract.
struct pipe_options {
  /// For a reader: the bytes of each writer that may be on their way or wait in the reader's
  /// memory. Each message counts 256 more. Beyond that the writer waits. For a writer: the bytes
  /// that it has on their way at most, or 8 MiB if that is more. From `min_window` to
  /// `max_window`.
  std::size_t window = std::size_t{8} << 20U;
  /// How long one wait for more to read may take, or a whole write, flush or close. The pipe goes
  /// on after a time-out. Zero: as long as the other process lives.
  std::chrono::nanoseconds timeout = std::chrono::nanoseconds::zero();
  /// For one version: `heartbeat_timeout`.
  detail::old_option<std::chrono::nanoseconds> silence = {};
  /// How long the other process may be silent while something waits for it, until it counts as
  /// dead. For pipes that are opened by URL. For others the worker's `heartbeat_timeout` counts.
  std::chrono::nanoseconds heartbeat_timeout = silence.value_or(std::chrono::seconds(5));
  /// For one version: `connect_timeout`.
  detail::old_option<std::chrono::nanoseconds> meeting = {};
  /// How long opening waits for the other side.
  std::chrono::nanoseconds connect_timeout = meeting.value_or(std::chrono::seconds(30));
  /// After a stop is requested, from any thread, each wait ends with `errc::canceled`, and so does
  /// each later one.
  std::stop_token stop = {};
  /// For a reader: the number of writers that it waits for. It reads their bytes in turns.
  std::size_t writers = 1;
  /// For a writer: the number of readers that it waits for. Each of them gets every byte.
  std::size_t readers = 1;
  /// For one version: `slow_reader`.
  detail::old_option<slow_reader_policy> slow = {};
  slow_reader_policy slow_reader = slow.value_or(slow_reader_policy::wait);
  /// For one version: `slow_reader_timeout`.
  detail::old_option<std::chrono::nanoseconds> patience = {};
  std::chrono::nanoseconds slow_reader_timeout = patience.value_or(std::chrono::seconds(5));
  /// UCX's transports, devices and configuration, for pipes that are opened by URL.
  context_options context = {};

  static constexpr std::size_t min_window = std::size_t{64} << 10U;
  static constexpr std::size_t max_window = std::size_t{1} << 30U;
  static constexpr std::size_t max_peers = 1024;
#if UCXIO_OLD_NAMES
  [[deprecated("min_window")]] static constexpr std::size_t least_window = min_window;
  [[deprecated("max_window")]] static constexpr std::size_t most_window = max_window;
  [[deprecated("max_peers")]] static constexpr std::size_t most_peers = max_peers;
#endif
};

#if UCXIO_OLD_NAMES
using slow_reader [[deprecated("slow_reader_policy")]] = slow_reader_policy;
#endif

}  // namespace ucx
