// Whether the peer of a connection is there still: by what it says, and by its process.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/clock.hpp"
#include "base/heartbeat.hpp"

namespace ucx::detail {

class endpoint_core;
class process_watch;
struct process_identity;

/// The peer is asked for a sign of life while something waits for it. Where UCX watches no peer,
/// and the peer is of this host, the system tells of the end of the peer's process. A part of the
/// connection; everything happens under the worker's lock.
class endpoint_liveness {
 public:
  endpoint_liveness(endpoint_core& connection, std::chrono::nanoseconds interval,
                    std::chrono::nanoseconds timeout) noexcept;
  endpoint_liveness(const endpoint_liveness&) = delete;
  endpoint_liveness& operator=(const endpoint_liveness&) = delete;
  ~endpoint_liveness();

  void heard() noexcept { heartbeat_.heard(); }
  /// Something waits, or waits no more, for a control message: the peer is watched meanwhile.
  void expect_control() noexcept;
  void expected_control() noexcept { --controls_expected_; }
  /// Asks the peer for a sign of life now.
  void ask();
  void answered() noexcept { ++answers_; }
  /// Returns how often the peer has answered such a question.
  std::uint64_t answers() const noexcept { return answers_; }
  /// Returns how long the peer may be silent while it is watched.
  std::chrono::nanoseconds timeout() const noexcept { return heartbeat_.timeout(); }
  /// Asks the peer, or fails the connection, where it is time for that. It is so only while
  /// `awaits_peer`, or a control message is expected. Returns when to look again.
  clock::time_point look(clock::time_point now, bool awaits_peer);

  /// Returns whether each side tells the other its process: where UCX does not see the end of it.
  bool tells_process() const noexcept;
  void watch_process(const std::optional<process_identity>& theirs);
  bool watches_process() const noexcept { return process_ != nullptr; }
  /// The connection has failed: the end of the process is not told any more.
  void stop() noexcept;

 private:
  endpoint_core& connection_;
  heartbeat heartbeat_;
  unsigned controls_expected_ = 0;
  std::uint64_t answers_ = 0;
  std::unique_ptr<process_watch> process_;
};

}  // namespace ucx::detail
