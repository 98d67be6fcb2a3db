// UCX's worker, which a `worker_core` drives.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <string>

#include "base/result.hpp"
#include "ucx/worker.hpp"
#include "worker/context_core.hpp"

namespace ucx::detail {

/// Made, taken over or borrowed, asked, driven, and destroyed by its owner, under the owner's lock:
/// UCX sees one thread at a time. The facts that it tells never change.
class ucx_worker {
 public:
  explicit ucx_worker(context_core& context) noexcept : context_(context) {}
  ucx_worker(const ucx_worker&) = delete;
  ucx_worker& operator=(const ucx_worker&) = delete;

  ucp_worker_h handle() const noexcept { return handle_; }
  /// Returns what a loop sleeps on; -1 without feature::wakeup.
  int event_fd() const noexcept { return event_fd_; }
  /// Of an active message; 0 without feature::am.
  std::size_t largest_header() const noexcept { return largest_header_; }

  result<void> create(const std::string& name);
  /// Uses one that was made elsewhere, from `claim()` on.
  void adopt(ucp_worker_h made, ownership owner) noexcept {
    handle_ = made;
    is_borrowed_ = owner == ownership::borrow;
  }
  /// Makes sure that no other object of this library drives it, whose messages would come here.
  /// Errors: already_exists.
  result<void> claim();
  /// Another object may drive it from now on.
  void let_go() noexcept;
  /// It is its maker's again.
  void give_back() noexcept {
    let_go();
    handle_ = nullptr;
  }
  /// Returns whether it outlives this object.
  bool is_borrowed() const noexcept { return is_borrowed_; }
  /// Finds out what it tells of itself. Errors: UCX's; of one that was adopted not_supported, where
  /// it allows one thread only and `threads`.
  result<void> look_at(bool threads);
  /// Unless it is borrowed.
  void destroy() noexcept;

  result<worker_attributes> attributes() const;
  result<worker_address> address() const;

  unsigned progress() noexcept { return context_.api().worker_progress(handle_); }
  /// Returns whether nothing happens until the event descriptor says so.
  bool arm() noexcept;
  /// From any thread.
  void signal() noexcept;

 private:
  context_core& context_;
  ucp_worker_h handle_ = nullptr;
  bool is_borrowed_ = false;
  bool is_claimed_ = false;
  int event_fd_ = -1;
  std::size_t largest_header_ = 0;
};

}  // namespace ucx::detail
