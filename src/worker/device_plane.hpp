// Transfers by UCX's second context of a context: RMA with memory of CUDA devices, by hardware.
#pragma once

#include <ucp/api/ucp.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/logger.hpp"
#include "base/owned_descriptor.hpp"
#include "base/result.hpp"
#include "cuda/cuda_driver.hpp"
#include "ucp/forked_ucp.hpp"
#include "ucp/ucp_api.hpp"
#include "ucx/context.hpp"
#include "worker/plane_connections.hpp"
#include "worker/plane_transfer.hpp"
#include "worker/plane_worker.hpp"

namespace ucx::detail {

/// Has one worker of UCX's, which only the plane's thread calls. UCX may call the CUDA driver
/// there, which may not return. UCX emulates nothing for it (`PROTO_EMULATION_ENABLE=n`): it
/// refuses what the hardware does not do, before a byte has moved. Threads: sharing one object is
/// safe.
class device_plane : public std::enable_shared_from_this<device_plane> {
 public:
  /// Starts its thread, which makes UCX's context and worker with what the context was made of:
  /// that may call the CUDA driver. Errors: those of making a thread.
  static result<std::shared_ptr<device_plane>> make(ucp_api& api, const context_options& options,
                                                    const std::vector<std::string>& devices,
                                                    std::shared_ptr<logger> log);
  device_plane(const device_plane&) = delete;
  device_plane& operator=(const device_plane&) = delete;
  /// Ends transfers and connections by force, and the thread. On that thread it returns at once:
  /// the last reference to a worker may go there. A thread that hangs is left alone after
  /// `longest_close`: it keeps what it needs. REQUIRES: nothing is mapped in its context.
  void close() noexcept;

  ucp_api& api() const noexcept { return is_inherited() ? forked_ucp() : api_; }
  /// Returns whether it is that of a process that this one was forked from: its thread is not here.
  bool is_inherited() const noexcept { return made_.is_inherited(); }
  /// Waits until UCX has made both. Errors: not_supported, and why UCX has no such plane here, or
  /// that it has taken too long; those of making a context and a worker.
  result<void> wait_made();
  /// Returns why UCX has not made them; nothing where it has, or goes on.
  std::optional<failure> why_not_made() const;

  // REQUIRES: `wait_made()` has ended well.
  /// Returns UCX's context, in which any thread may map memory.
  ucp_context_h handle() const noexcept { return worker_->context(); }
  /// Returns the address of UCX's worker: the planes of peers connect to it.
  const std::vector<std::byte>& address() const noexcept { return worker_->address(); }

  const std::shared_ptr<logger>& log() const noexcept { return log_; }

  /// Returns the connection to the plane with that address, or a new one where there is none, or it
  /// is lost. Nothing is sent before its first transfer. It goes with its last key.
  std::shared_ptr<plane_peer> peer(std::span<const std::byte> address) {
    return connections_.peer(address);
  }
  /// Returns a key to memory of `peer`, for its transfers. It is unpacked at the first of them, and
  /// destroyed when nothing holds it any more.
  std::shared_ptr<plane_key> key(std::shared_ptr<plane_peer> peer,
                                 std::span<const std::byte> packed);

  /// Begins a transfer when the plane is made, and the work before it is done. Errors: no_memory,
  /// closed; those of `why_not_made()`.
  std::error_code start(std::shared_ptr<plane_transfer> wanted) noexcept;
  /// Has the thread look at what was abandoned or is held no more.
  void look() noexcept;

 private:
  /// How long the thread waits for UCX to let go at the end.
  static constexpr std::chrono::seconds longest_end{2};
  static constexpr std::chrono::seconds longest_close{3};
  static constexpr std::chrono::seconds longest_making{10};
  /// The thread has let go of the plane, or is about to.
  struct thread_end {
    std::mutex mutex;
    std::condition_variable changed;
    std::thread::id serving;
    bool over = false;
  };

  device_plane(ucp_api& api, std::shared_ptr<logger> log, owned_descriptor wake)
      : api_(api), log_(std::move(log)), wake_(std::move(wake)) {}
  result<void> start_thread(context_options options, std::vector<std::string> devices);
  bool set_up(const context_options& options, const std::vector<std::string>& devices) noexcept;
  void tell_of_worker(const std::optional<failure>& why_not) const;
  void cancel_new() noexcept;
  void serve() noexcept;
  bool round();
  void sleep() noexcept;
  bool take_new();
  bool look_at(plane_transfer& each) noexcept;
  static cuda::result work_before(const plane_transfer& each) noexcept;
  void begin(plane_transfer& each) noexcept;
  void flush(plane_transfer& each) noexcept;
  void over(plane_transfer& each, ucs_status_t status) noexcept;
  void end() noexcept;
  static void on_moved(void* request, ucs_status_t status, void* self);

  ucp_api& api_;
  const std::shared_ptr<logger> log_;
  const process_stamp made_;
  const std::shared_ptr<thread_end> end_ = std::make_shared<thread_end>();
  const owned_descriptor wake_;
  std::unique_ptr<plane_worker> worker_;  // the thread's, until it is made
  plane_connections connections_{api_};

  mutable std::mutex mutex_;
  std::condition_variable settled_;
  bool is_settled_ = false;  // it is made, or is not
  std::optional<failure> why_not_made_;
  bool stopping_ = false;
  std::vector<std::shared_ptr<plane_transfer>> new_;

  std::vector<std::shared_ptr<plane_transfer>> active_;  // the thread's
};

}  // namespace ucx::detail
