// Runs functions for the peers of a worker: docs/reference/calls.md, "Over connections".
#pragma once

#include <any>
#include <cstddef>
#include <memory>
#include <system_error>
#include <vector>

#include "ucx/call_table.hpp"
#include "ucx/error.hpp"
#include "ucx/hybrid_clock.hpp"
#include "ucx/version.hpp"
#include "ucx/worker.hpp"

namespace ucx {

class server;

/// The options of a `call_server`.
struct call_server_options {
  /// The calls of each connection that may be under way: their arguments, or their answers, are on
  /// their way, or their answers come later. Further ones are refused (`busy`).
  std::size_t max_calls = 256;
  /// Bytes beside the arguments that the calls of each connection may take here, until their
  /// functions have returned. A call with more by itself is `no_space`, others get `busy`.
  std::size_t max_memory = std::size_t{256} << 20U;
  /// The program's own object, for `call_context::program`.
  std::any program = {};
  /// Takes the stamps of calls, and stamps the answers of those that have one. Null: calls have no
  /// moment here.
  std::shared_ptr<hybrid_clock> clock = nullptr;
};

/// Runs the functions of a table for every peer of a worker, over connections of any kind. They run
/// on the thread that drives the worker, one at a time, as handlers: they must not wait. One that
/// has to wait answers later (`call_context::defer()`, `call_task`).
///
///     ucx::call_table calls;
///     calls.add("add", [](int a, int b) { return a + b; });
///     ucx::call_server serves(worker, calls);
///
/// A worker has one at a time. Functions that are added to the table later are served, too. At a
/// worker of a `server` its rules hold: a function that a peer may not call does not exist for it
/// (`docs/reference/rules.md`).
/// Threads: as the worker's.
class UCXIO_EXPORT call_server {
 public:
  /// Makes an empty object, which serves nothing.
  call_server() noexcept;
  /// Serves the functions of `calls` from now on. At a worker of a `server` that has ended, no
  /// function exists for the peers.
  /// Errors: already_exists (the worker has a `call_server`), feature_disabled (a context without
  /// `feature::am`), closed (`driven` is empty).
  call_server(const worker& driven, const call_table& calls, call_server_options options = {},
              std::error_code& ec = throws);
  /// Serves them at each worker of a server, beside its names. Where there are several workers,
  /// functions run on several threads at a time.
  /// Lifetime: `by`, until this object is gone.
  /// Errors: as above, of any of the workers; closed (`by` was moved from).
  call_server(server& by, const call_table& calls, const call_server_options& options = {},
              std::error_code& ec = throws);
  call_server(call_server&& other) noexcept;
  call_server& operator=(call_server&& other) noexcept;
  /// Ends serving: peers that call get `no_such_handler`. Calls whose arguments are on their way
  /// are refused (`busy`). Answers that are on their way still go out. Calls that are answered
  /// later are `call_failed`, with the cause `canceled`. Waits for a function that runs, unless it
  /// is inside that, and for no coroutine: what one uses has to outlive it.
  ~call_server();

  /// Returns how many calls are under way: see `call_server_options::max_calls`.
  std::size_t under_way() const noexcept;

 private:
  void open(const worker& driven, const call_table& calls, call_server_options options,
            std::error_code& ec);

  std::vector<std::shared_ptr<detail::call_server_core>> cores_;  // one for each worker
};

}  // namespace ucx
