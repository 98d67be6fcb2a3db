// The clients that requests over one worker share.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "ucx/request.hpp"
#include "ucx/url.hpp"

namespace ucx::detail {

class client_core;
class worker_core;

/// One client for each server, which is connected when there is none. Those who ask meanwhile get
/// the outcome of the same attempt; it is given up when none of them is left. Keeps no client
/// alive. A part of a worker, under its lock, but for `start`.
class worker_clients {
 public:
  using receiver = std::function<void(std::shared_ptr<client_core>)>;

  worker_clients();
  ~worker_clients();
  worker_clients(const worker_clients&) = delete;
  worker_clients& operator=(const worker_clients&) = delete;

  /// `then` gets the client under the worker's lock: now, where there is one that is not lost.
  static request start(const std::shared_ptr<worker_core>& over, const url& server,
                       const io_options& options, receiver then);

 private:
  class asker;
  class place;

  place& place_of(const url& server);

  std::map<url, std::unique_ptr<place>> places_;
};

}  // namespace ucx::detail
