#include "worker/worker_round.hpp"

namespace ucx::detail {

constinit thread_local const worker_round* worker_round::innermost_ = nullptr;

}  // namespace ucx::detail
