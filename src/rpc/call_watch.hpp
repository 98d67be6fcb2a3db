// Watches the connection of a call that runs elsewhere.
#pragma once

#include <memory>
#include <new>
#include <stop_token>
#include <string>
#include <system_error>

#include "connection/endpoint_core.hpp"
#include "worker/core_access.hpp"
#include "worker/operation.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

/// Asks the function to stop when its connection is lost. It ends with that, or with its request.
class call_watch final : public operation {
 public:
  /// Under the worker's lock.
  static request start(const std::shared_ptr<endpoint_core>& over, std::stop_source stop) {
    worker_core& worker = over->worker();
    call_watch* const made = worker.pool_of<call_watch>().take();
    made->stop_ = std::move(stop);
    made->operation::start(worker, over, clock::time_point::max());
    return core_access::make_request(made);
  }

  void give_up(errc why) noexcept override {
    if (!done()) complete(make_error_code(why));
  }
  void connection_failed(std::error_code why) noexcept override {
    if (done()) return;
    try {  // what is told to stop is the program's
      worker().queue_handler([stop = stop_]() mutable { stop.request_stop(); });
    } catch (const std::bad_alloc&) {  // the function runs to its end
    }
    complete(why);
  }
  bool is_own() const noexcept override { return true; }
  std::string describe() const override { return "running a function for a peer"; }

 protected:
  void recycle() noexcept override {
    stop_ = std::stop_source(std::nostopstate);
    worker().pool_of<call_watch>().give_back(this);
  }

 private:
  std::stop_source stop_{std::nostopstate};
};

}  // namespace ucx::detail
