// Tells a worker's owner of the peers that connect by the worker's address.
#pragma once

#include <memory>

#include "connection/connection_observer.hpp"

namespace ucx::detail {

class worker_core;

class address_peers final : public connection_observer,
                            public std::enable_shared_from_this<address_peers> {
 public:
  explicit address_peers(worker_core& worker) noexcept : worker_(worker) {}

  void established(endpoint_core& connection) override;
  void ended(endpoint_core& connection, bool was_established) override;

 private:
  template <class Handler, class Told>
  void tell(const Handler& handler, Told told);

  worker_core& worker_;
};

}  // namespace ucx::detail
