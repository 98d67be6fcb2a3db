// Runs functions for the peers of a worker: docs/reference/calls.md, "Over connections".
#pragma once

#include <any>
#include <cstddef>
#include <memory>
#include <system_error>

#include "ucx/call_table.hpp"
#include "ucx/error.hpp"
#include "ucx/version.hpp"
#include "ucx/worker.hpp"

namespace ucx {

/// The options of a `call_server`.
struct call_server_options {
  /// The calls of each connection that may be under way: their arguments, or their answers, are on
  /// their way. Further ones are refused (`busy`).
  std::size_t max_calls = 256;
  /// The program's own object, for `call_context::program`.
  std::any program = {};
};

/// Runs the functions of a table for every peer of a worker, over connections of any kind. They run
/// on the thread that drives the worker, one at a time, as handlers: they must not wait.
///
///     ucx::call_table calls;
///     calls.add("add", [](int a, int b) { return a + b; });
///     ucx::call_server serves(worker, calls);
///
/// A worker has one at a time. Functions that are added to the table later are served, too.
/// Threads: as the worker's.
class UCXIO_EXPORT call_server {
 public:
  /// Makes an empty object, which serves nothing.
  call_server() noexcept;
  /// Serves the functions of `calls` from now on.
  /// Errors: already_exists (the worker has a `call_server`), feature_disabled (a context without
  /// `feature::am`), closed (`driven` is empty).
  call_server(const worker& driven, const call_table& calls, call_server_options options = {},
              std::error_code& ec = throws);
  call_server(call_server&& other) noexcept;
  call_server& operator=(call_server&& other) noexcept;
  /// Ends serving: peers that call get `no_such_handler`. Calls whose arguments are on their way
  /// are refused (`busy`). Answers that are on their way still go out. Waits for a function that
  /// runs, unless it is inside that.
  ~call_server();

  /// Returns how many calls are under way: see `call_server_options::max_calls`.
  std::size_t under_way() const noexcept;

 private:
  std::shared_ptr<detail::call_server_core> core_;
};

}  // namespace ucx
