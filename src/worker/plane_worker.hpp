// UCX's second context of a context, for memory of devices, with its one worker.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/forked_child.hpp"
#include "base/result.hpp"
#include "ucp/ucp_api.hpp"
#include "ucx/context.hpp"

namespace ucx::detail {

/// UCX emulates nothing for it (`PROTO_EMULATION_ENABLE=n`). A child of fork() leaves both to its
/// parent.
class plane_worker {
 public:
  /// Makes both with what the context was made of. Errors: not_supported, and why UCX has no such
  /// context here; those of making a context and a worker.
  static result<std::unique_ptr<plane_worker>> make(ucp_api& api, const context_options& options,
                                                    const std::vector<std::string>& devices);
  plane_worker(const plane_worker&) = delete;
  plane_worker& operator=(const plane_worker&) = delete;
  /// REQUIRES: nothing is mapped in the context.
  ~plane_worker();

  ucp_context_h context() const noexcept { return context_; }
  ucp_worker_h handle() const noexcept { return worker_; }
  int event_fd() const noexcept { return event_fd_; }
  const std::vector<std::byte>& address() const noexcept { return address_; }
  /// Returns what it goes by, with commas.
  std::string resources() const;

  /// Ends the worker before its context.
  void destroy_worker() noexcept { api_.worker_destroy(std::exchange(worker_, nullptr)); }

 private:
  explicit plane_worker(ucp_api& api) noexcept : api_(api) {}
  result<void> make_context(const context_options& options,
                            const std::vector<std::string>& devices);
  result<void> check_memory() const;
  result<void> make_worker();

  ucp_api& api_;
  const process_stamp made_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int event_fd_ = -1;
  std::vector<std::byte> address_;
};

}  // namespace ucx::detail
