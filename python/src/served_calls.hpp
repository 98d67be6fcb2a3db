// The functions of Python's that a server serves.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <ucx/call_server.hpp>
#include <ucx/call_table.hpp>
#include <ucx/server.hpp>

#include "call_form.hpp"
#include "call_queue.hpp"

namespace ucxio_python {

/// Threads: any, without the GIL.
class served_calls {
 public:
  served_calls() = default;
  served_calls(const served_calls&) = delete;
  served_calls& operator=(const served_calls&) = delete;
  ~served_calls() { end(); }

  /// Serves a function from now on. Its calls go into `queue`.
  /// Errors: those of `call_table::add_dynamic()`; closed.
  void add(const std::shared_ptr<ucx::server>& by, const ucx::call_function& called,
           std::shared_ptr<const call_types> types, const std::shared_ptr<call_queue>& queue,
           std::uint64_t number, const std::string& documentation);
  /// Closes the queues, and serves no more. Once the queues are closed, their threads end.
  void end();
  void close_queues();

 private:
  std::mutex lock_;
  bool is_over_ = false;
  std::shared_ptr<ucx::server> by_;
  ucx::call_table table_;
  std::optional<ucx::call_server> serves_;  // goes first
  std::vector<std::weak_ptr<call_queue>> queues_;
};

}  // namespace ucxio_python
