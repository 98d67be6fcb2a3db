#include "cuda/stream_gate.hpp"

#include "cuda/cuda_context.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

/// Before CUDA 11.7 it is off, unless whoever runs the machine has turned it on. REQUIRES: the
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

/// Part of a graph it would hold nothing back when that is launched.
void check_capture(const cuda_driver& driver, cuda::stream stream, std::string& what,
                   std::error_code& ec) {
  int capturing = 0;
  const cuda::result result = driver.stream_is_capturing(stream, &capturing);
  if (result == cuda::success && capturing == 0) return;
  what = "the stream is capturing a graph";
  ec = errc::invalid_argument;
  // Of the legacy default stream: another one is, which waits for it.
  if (result == cuda::success || result == cuda::capture_implicit) return;
  what = cuda_words(driver, "cuStreamIsCapturing", result);
  ec = cuda_error(result);
}

}  // namespace

std::unique_ptr<stream_gate> stream_gate::shut(const cuda_driver& driver, void* stream,
                                               clock::time_point until, std::string& what,
                                               std::error_code& ec) {
  ec.clear();
  if (!driver.holds_streams()) {
    what = "the CUDA driver can not have a stream wait for memory";
    ec = errc::not_supported;
    return nullptr;
  }
  const auto handle = static_cast<cuda::stream>(stream);
  const auto context = cuda_context::of_stream(driver, handle, what, ec);
  if (!ec) check_capture(driver, handle, what, ec);
  if (ec) return nullptr;
  const current_context current(*context);
  if (current.result() != cuda::success) {
    what = cuda_words(driver, "cuCtxPushCurrent", current.result());
    ec = cuda_error(current.result());
    return nullptr;
  }
  std::unique_ptr<stream_gate> made(new stream_gate);
  gate_keeper& keeper = gate_keeper::of(context->handle());
  made->gate_ = keeper.shut(until, ec);
  if (ec) {
    what = "as many streams are held as can be, or no thread is to be had";
    return nullptr;
  }
  made->keeper_ = &keeper;
  made->hold(driver, handle, what, ec);
  return ec ? nullptr : std::move(made);
}

/// REQUIRES: the stream's context is current.
void stream_gate::hold(const cuda_driver& driver, cuda::stream stream, std::string& what,
                       std::error_code& ec) {
  const char* call = nullptr;
  cuda::address word = 0;
  cuda::result result = keeper_->reach(driver, gate_, word, call);
  if (result == cuda::success) {
    call = "cuStreamWaitValue32";
    result = is_allowed(driver)
                 ? driver.stream_wait_value(stream, word, gate_.value, cuda::wait_value_geq)
                 : cuda::not_supported;
  }
  if (result == cuda::success) return;
  what = cuda_words(driver, call, result);
  if (result == cuda::not_supported && driver.wait_value_has_to_be_allowed) {
    what +=
        ": before CUDA 11.7 it is off unless the kernel's module nvidia has "
        "NVreg_EnableStreamMemOPs=1";
  }
  ec = cuda_error(result);
}

stream_gate::~stream_gate() {
  if (keeper_ != nullptr) keeper_->open(gate_);
}

}  // namespace ucx::detail
