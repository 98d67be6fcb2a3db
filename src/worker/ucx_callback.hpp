// The scope of a callback of UCX's that may end operations.
#pragma once

#include <mutex>
#include <optional>

#include "worker/worker_core.hpp"
#include "worker/worker_lock.hpp"
#include "worker/worker_round.hpp"

namespace ucx::detail {

/// UCX calls back in rounds of `worker_core`, which has the lock then. Of a borrowed worker the
/// program makes rounds of UCX's, too: there this is what the round has left out. Where the worker
/// of this library has ended, the last callback frees it.
class ucx_callback {
 public:
  explicit ucx_callback(worker_core& worker) {
    if (worker.ucx().is_borrowed()) begin(worker);
  }
  /// Frees a request of UCX's, which has ended.
  ucx_callback(worker_core& worker, void* request) : ucx_callback(worker) {
    worker.api().request_free(request);
  }
  ~ucx_callback() {
    if (round_) end();
  }
  ucx_callback(const ucx_callback&) = delete;
  ucx_callback& operator=(const ucx_callback&) = delete;

 private:
  struct round {
    explicit round(worker_core& of)
        : worker(of), guard(of.lock()), made(of, worker_round::part::ucx) {}
    worker_core& worker;
    std::lock_guard<worker_lock> guard;
    worker_round made;
  };
  [[gnu::cold]] void begin(worker_core& worker);
  [[gnu::cold]] void end();

  std::optional<round> round_;
};

}  // namespace ucx::detail
