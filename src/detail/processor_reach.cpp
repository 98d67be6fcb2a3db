#include "detail/processor_reach.hpp"

#include <sys/uio.h>
#include <unistd.h>

namespace ucx::detail {

bool is_in_reach(const void* address) noexcept {
  char seen = 0;
  const ::iovec into{&seen, 1};
  const ::iovec from{const_cast<void*>(address), 1};
  return ::process_vm_readv(::getpid(), &into, 1, &from, 1, 0) == 1;
}

}  // namespace ucx::detail
