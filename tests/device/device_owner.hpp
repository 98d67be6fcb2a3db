// Another process that has memory of a device, and this one, which reads it.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "cuda/cuda_driver.hpp"
#include "support/basics/soon.hpp"
#include "support/fake_cuda/cuda_program.hpp"
#include "support/process/test_peer.hpp"

namespace ucx::test {

/// The other process has the same driver, with devices from the beginning.
inline test_peer start_owner() {
  detail::cuda_driver::find();  // this process has chosen
  ::setenv("UCXIO_CUDA_DRIVER", READY_CUDA, 1);
  test_peer made("lent");
  ::setenv("UCXIO_CUDA_DRIVER", FAKE_CUDA, 1);
  return made;
}

/// Ends when nobody retains a context but the program, and who copies on this thread what streams
/// have buffered: who copied for a worker, and failed once, lives for a second longer.
struct last_of_driver {
  ~last_of_driver() {
    EXPECT_TRUE(soon([] {
      return fake_cuda_calls("cuDevicePrimaryCtxRetain") <=
             fake_cuda_calls("cuDevicePrimaryCtxRelease") + 2;
    }));
  }
};

}  // namespace ucx::test
