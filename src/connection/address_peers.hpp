// Tells a worker's owner of the peers that connect by the worker's address.
#pragma once

#include <memory>

#include "connection/connection_observer.hpp"
#include "ucx/connection_report.hpp"

namespace ucx::detail {

class worker_core;

/// One handler runs at a time, and may be replaced meanwhile. Under the worker's lock.
class address_peers final : public connection_observer,
                            public std::enable_shared_from_this<address_peers> {
 public:
  /// Begins with the handlers of the worker's options.
  explicit address_peers(worker_core& worker);

  /// Sets the handlers, and gives back those that were set, which are not called again, but one may
  /// be running.
  void exchange(std::shared_ptr<connection_events>& events) noexcept { events_.swap(events); }
  bool is_telling() const noexcept { return telling_ > 0; }

  void established(endpoint_core& connection) override;
  void ended(endpoint_core& connection, bool was_established) override;

 private:
  template <class Call>
  void queue(Call call);

  worker_core& worker_;
  std::shared_ptr<connection_events> events_;
  int telling_ = 0;
};

}  // namespace ucx::detail
