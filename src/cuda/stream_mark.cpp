#include "cuda/stream_mark.hpp"

namespace ucx::detail {

result<std::shared_ptr<const stream_mark>> stream_mark::of(
    std::shared_ptr<const cuda_context> context, void* stream) {
  std::shared_ptr<stream_mark> made(new stream_mark(std::move(context)));
  const cuda_driver& driver = made->context_->driver();
  const current_context current(*made->context_);
  cuda::result said = current.result();
  if (said == cuda::success) {
    said = driver.event_create(&made->event_, cuda::event_disable_timing);
  }
  if (said == cuda::success) {
    said = driver.event_record(made->event_, static_cast<cuda::stream>(stream));
  }
  if (said != cuda::success) return failure{cuda_error(said)};
  return made;
}

stream_mark::~stream_mark() {
  if (event_ == nullptr) return;
  const current_context current(*context_);
  if (current.result() == cuda::success) context_->driver().event_destroy(event_);
}

}  // namespace ucx::detail
