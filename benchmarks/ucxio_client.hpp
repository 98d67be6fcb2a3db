// Our side of a comparison.
#pragma once

#include "owner_process.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/worker.hpp"

namespace ucx::benchmarks {

/// One region of the owner process, reached by ucxio with all its defaults.
class ucxio_client {
 public:
  ucxio_client(owner_process& owner, plane where, const owner_process::target& target)
      : context_(options_of(where)),
        worker_(context_),
        endpoint_(worker_, target.address),
        region_(endpoint_, target.descriptor) {
    owner.serve(owner_process::party::ours);
    endpoint_.wait_connected();
  }

  const ucx::context& context() const noexcept { return context_; }
  ucx::remote_region& region() noexcept { return region_; }

 private:
  ucx::context context_;
  ucx::worker worker_;
  ucx::endpoint endpoint_;
  ucx::remote_region region_;
};

}  // namespace ucx::benchmarks
