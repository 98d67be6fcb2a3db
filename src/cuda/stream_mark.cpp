#include "cuda/stream_mark.hpp"

namespace ucx::detail {

std::shared_ptr<const stream_mark> stream_mark::of(std::shared_ptr<const cuda_context> context,
                                                   void* stream, std::error_code& ec) {
  const std::shared_ptr<stream_mark> made(new stream_mark(std::move(context)));
  const cuda_driver& driver = made->context_->driver();
  const current_context current(*made->context_);
  cuda::result result = current.result();
  if (result == cuda::success) {
    result = driver.event_create(&made->event_, cuda::event_disable_timing);
  }
  if (result == cuda::success) {
    result = driver.event_record(made->event_, static_cast<cuda::stream>(stream));
  }
  ec = cuda_error(result);
  return ec ? nullptr : made;
}

stream_mark::~stream_mark() {
  if (event_ == nullptr) return;
  const current_context current(*context_);
  if (current.result() == cuda::success) context_->driver().event_destroy(event_);
}

}  // namespace ucx::detail
