#include "worker/ucx_callback.hpp"

namespace ucx::detail {

void ucx_callback::begin(worker_core& worker) { round_.emplace(worker); }

void ucx_callback::end() {
  worker_core& worker = round_->worker;
  round_.reset();
  worker.called_back();
}

}  // namespace ucx::detail
