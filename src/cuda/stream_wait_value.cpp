#include "cuda/stream_wait_value.hpp"

#include <string>
#include <utility>

#include "cuda/cuda_context.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

/// Before CUDA 11.7 it is off, unless the machine's administrator has turned it on. REQUIRES: the
/// context is current.
bool is_allowed(const cuda_driver& driver) noexcept {
  if (!driver.wait_value_has_to_be_allowed) return true;
  cuda::device device = 0;
  int allowed = 0;
  return driver.context_device(&device) == cuda::success &&
         driver.device_attribute(&allowed, cuda::attribute_stream_mem_ops, device) ==
             cuda::success &&
         allowed != 0;
}

failure refusal_of(const cuda_driver& driver, const char* call, cuda::result said) {
  return {cuda_error(said), cuda_words(driver, call, said)};
}

/// Part of a graph it would hold nothing back when that is launched.
result<void> check_capture(const cuda_driver& driver, cuda::stream stream) {
  int capturing = 0;
  const cuda::result said = driver.stream_is_capturing(stream, &capturing);
  if (said == cuda::success && capturing == 0) return {};
  // Of the legacy default stream: another one is, which waits for it.
  if (said == cuda::success || said == cuda::capture_implicit) {
    return failure{errc::invalid_argument, "the stream is capturing a graph"};
  }
  return refusal_of(driver, "cuStreamIsCapturing", said);
}

}  // namespace

result<std::unique_ptr<stream_wait_value>> stream_wait_value::shut(const cuda_driver& driver,
                                                                   void* stream,
                                                                   clock::time_point until) {
  if (!driver.holds_streams()) {
    return failure{errc::not_supported, "the CUDA driver can not have a stream wait for memory"};
  }
  const auto handle = static_cast<cuda::stream>(stream);
  const auto context = cuda_context::of_stream(driver, handle);
  if (!context) return context.why();
  if (const auto plain = check_capture(driver, handle); !plain) return plain.why();
  const current_context current(**context);
  if (current.result() != cuda::success) {
    return refusal_of(driver, "cuCtxPushCurrent", current.result());
  }
  std::unique_ptr<stream_wait_value> made(new stream_wait_value);
  stream_wait_value_pool& keeper = stream_wait_value_pool::of((*context)->handle());
  const std::optional<stream_wait_value_pool::gate> gate = keeper.shut(until);
  if (!gate) {
    return failure{errc::busy, "as many streams are held as can be, or no thread is to be had"};
  }
  made->gate_ = *gate;
  made->keeper_ = &keeper;
  if (const auto held = made->hold(driver, handle); !held) return held.why();
  return made;
}

/// REQUIRES: the stream's context is current.
result<void> stream_wait_value::hold(const cuda_driver& driver, cuda::stream stream) {
  const char* call = nullptr;
  cuda::address word = 0;
  cuda::result said = keeper_->reach(driver, gate_, word, call);
  if (said == cuda::success) {
    call = "cuStreamWaitValue32";
    said = is_allowed(driver)
               ? driver.stream_wait_value(stream, word, gate_.value, cuda::wait_value_geq)
               : cuda::not_supported;
  }
  if (said == cuda::success) return {};
  failure why = refusal_of(driver, call, said);
  if (said == cuda::not_supported && driver.wait_value_has_to_be_allowed) {
    why.text +=
        ": before CUDA 11.7 it is off unless the kernel's module nvidia has "
        "NVreg_EnableStreamMemOPs=1";
  }
  return why;
}

stream_wait_value::~stream_wait_value() {
  if (keeper_ != nullptr) keeper_->open(gate_);
}

}  // namespace ucx::detail
