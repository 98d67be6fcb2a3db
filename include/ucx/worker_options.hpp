// The options, attributes and counters of a worker.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <string_view>

#include "ucx/connection_report.hpp"
#include "ucx/old_option.hpp"
#include "ucx/to_string.hpp"
#include "ucx/version.hpp"

namespace ucx {

/// The driver of a worker. All modes give equal results.
enum class progress_mode {
  automatic,        ///< `caller`; for a server's worker `sleeping_thread`.
  caller,           ///< Blocking calls, and `progress()`. Nothing happens between calls.
  polling_thread,   ///< A thread of the worker that polls: lowest latency, one core.
  sleeping_thread,  ///< A thread that sleeps on UCX's events, and spins briefly after activity.
  external,         ///< The caller's event loop: `event_fd()`, `arm()`, `progress()`, or `run()`.
};

template <>
UCXIO_EXPORT std::string_view detail::enum_name(progress_mode value) noexcept;

/// The threads that may use a worker without a thread.
enum class thread_mode {
  automatic,  ///< `single`; for a client's worker `safe`.
  single,     ///< One thread at a time.
  multi,      ///< Any, at any time. A thread that waits drives progress for all.
#if UCXIO_OLD_NAMES
  safe [[deprecated("multi")]] = multi,
#endif
};

template <>
UCXIO_EXPORT std::string_view detail::enum_name(thread_mode value) noexcept;

/// The options of a worker. Durations are defaults for everything made from it. Zero, or less,
/// means the value that is written here: every wait has a bound.
struct worker_options {
  progress_mode progress = progress_mode::automatic;
  /// For one version: `thread_mode`.
  detail::old_option<ucx::thread_mode> threads = {};
  ucx::thread_mode thread_mode = threads.value_or(ucx::thread_mode::automatic);
  /// How long `sleeping_thread` polls after the last activity before it sleeps.
  std::chrono::nanoseconds spin = std::chrono::microseconds(100);
  /// How long connecting may take, with the look-up of a name and the attempts at all addresses.
  std::chrono::nanoseconds connect_timeout = std::chrono::seconds(5);
  std::chrono::nanoseconds operation_timeout = std::chrono::seconds(30);
  /// How long `close()` may flush before the connection is dropped.
  std::chrono::nanoseconds close_timeout = std::chrono::seconds(5);
  /// How often a side that waits for something asks the peer for a sign of life.
  std::chrono::nanoseconds heartbeat_interval = std::chrono::seconds(1);
  /// How long a peer may be silent, while something waits for it, until it counts as dead.
  std::chrono::nanoseconds heartbeat_timeout = std::chrono::seconds(5);
  /// The bytes of messages from each peer that may be here and were not taken by the program. It
  /// bounds memory, and holds senders back. Zero means the default. The least is 16 KiB.
  std::size_t message_window = 4 << 20;
  /// Likewise, of all peers together: with many peers each has less than `message_window`, but
  /// never less than 6 KiB (`docs/reference/messages.md`). Zero means the default.
  std::size_t untaken_messages = std::size_t{256} << 20U;
  /// The host memory that may be pinned, for bytes on the way to or from memory of CUDA devices.
  /// Nothing is pinned before the first such bytes. When the pinned memory is in use, further bytes
  /// go through other memory, more slowly (`staging_statistics`). Zero means the default.
  std::size_t pinned_memory = std::size_t{64} << 20U;
  /// Called first on the worker's thread, where the mode has one. It may set the thread's affinity,
  /// its name, or a device's context. Handlers find that context there, because copies of the
  /// library leave it alone.
  std::function<void()> on_thread_start = {};
  /// Gets an exception of a handler, on the thread that ran it. After that progress goes on.
  /// Without this function, or when it throws itself, std::terminate is called.
  std::function<void(std::exception_ptr)> on_exception = {};
  /// The name that peers, logs and UCX's own tools show: 64 bytes at most. Empty: UCX's choice.
  std::string name = {};
  /// The terms of connections whose own options have none.
  connection_terms terms = {};
  /// For one version: `worker::set_connection_events`, until that is called.
  detail::old_handler<std::function<void(endpoint, const connection_report&)>> on_established = {};
  detail::old_handler<std::function<void(const connection_end&)>> on_refused = {};
  detail::old_handler<std::function<void(const connection_end&)>> on_closed = {};
};

#if UCXIO_OLD_NAMES
using thread_safety [[deprecated("thread_mode")]] = thread_mode;
#endif

/// UCX's description of a worker.
struct worker_attributes {
  std::string name = {};
  /// The threads that may call UCX: "single", "serialized" (any, one at a time) or "multi".
  /// `worker_options` says which threads may use the worker.
  std::string thread_mode = {};
  union {
    /// The longest header of UCX's active messages; 0 without `feature::am`. A program has less:
    /// `endpoint::max_header_size()`.
    std::size_t max_header_size = 0;
#if UCXIO_OLD_NAMES
    [[deprecated("max_header_size")]] std::size_t largest_header;
#endif
  };
  std::size_t address_size = 0;  ///< The size of the worker's address, in bytes.
};

/// Counters of the copies between memory of CUDA devices and host buffers, on the way from or to
/// peers, and of direct copies (`docs/how-to/gpu.md`).
struct staging_statistics {
  std::uint64_t copies = 0;          ///< Copies that the driver was asked for.
  std::uint64_t bytes = 0;           ///< Bytes of these copies.
  std::uint64_t unpinned_bytes = 0;  ///< Of these bytes, those through memory that was not pinned.
  std::uint64_t memory = 0;          ///< Bytes of the present buffers, in use or idle.
  std::uint64_t pinned_memory = 0;   ///< Of these, the pinned ones.
  /// Bytes that this side's driver copied between its own memory and memory of another process's
  /// device. The other process did nothing. The counters before have them, too, where this side's
  /// memory was neither pinned nor a device's.
  std::uint64_t direct_bytes = 0;
  union {
    /// Reads and writes that began as direct copies, and went by message.
    std::uint64_t direct_fallbacks = 0;
#if UCXIO_OLD_NAMES
    [[deprecated("direct_fallbacks")]] std::uint64_t not_direct;
#endif
  };
};

}  // namespace ucx
