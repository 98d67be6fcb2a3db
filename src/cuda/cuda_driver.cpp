#include "cuda/cuda_driver.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

std::atomic<bool> was_forked{false};
std::atomic<bool> lacks_some{false};
// No static within a function: a child that is forked while another thread loads the driver would
// wait for it for ever. Threads that look at the same moment each load it, and one is kept.
constinit const cuda_driver no_driver{};
constinit std::atomic<const cuda_driver*> known_driver{nullptr};
[[maybe_unused]] const int forks_noticed =
    ::pthread_atfork(nullptr, nullptr, [] { was_forked.store(true, std::memory_order_relaxed); });

/// Looks functions up, and remembers whether one was missing.
class symbol_table {
 public:
  explicit symbol_table(void* library) noexcept : library_(library) {}

  template <class Function>
  void find(const char* name, Function*& into) noexcept {
    find_some(name, into);
    if (into == nullptr) complete_ = false;
  }
  /// As `find()`, of a function that may be missing.
  template <class Function>
  void find_some(const char* name, Function*& into) noexcept {
    into = reinterpret_cast<Function*>(::dlsym(library_, name));
  }
  bool complete() const noexcept { return complete_; }

 private:
  void* library_;
  bool complete_ = true;
};

void find_shared_by_descriptors(cuda_driver& into, symbol_table& symbols) noexcept {
  symbols.find_some("cuMemRetainAllocationHandle", into.retain_allocation);
  symbols.find_some("cuMemRelease", into.release_allocation);
  symbols.find_some("cuMemExportToShareableHandle", into.export_allocation);
  symbols.find_some("cuMemImportFromShareableHandle", into.import_allocation);
  symbols.find_some("cuMemAddressReserve", into.reserve_addresses);
  symbols.find_some("cuMemAddressFree", into.free_addresses);
  symbols.find_some("cuMemMap", into.map);
  symbols.find_some("cuMemUnmap", into.unmap);
  symbols.find_some("cuMemSetAccess", into.set_access);
  symbols.find_some("cuMemPoolExportToShareableHandle", into.export_pool);
  symbols.find_some("cuMemPoolExportPointer", into.export_pool_pointer);
  symbols.find_some("cuMemPoolImportFromShareableHandle", into.import_pool);
  symbols.find_some("cuMemPoolImportPointer", into.import_pool_pointer);
  symbols.find_some("cuMemPoolSetAccess", into.set_pool_access);
  symbols.find_some("cuMemPoolDestroy", into.destroy_pool);
}

bool find_all(cuda_driver& into, void* library) noexcept {
  symbol_table symbols(library);
  // The numbers are those of the ABI that cuda.h has given these names since CUDA 3.2 to 11.
  symbols.find("cuInit", into.init);
  symbols.find("cuDeviceGetCount", into.device_get_count);
  symbols.find("cuDeviceGet", into.device_get);
  symbols.find("cuDevicePrimaryCtxRetain", into.primary_context_retain);
  symbols.find("cuDevicePrimaryCtxRelease_v2", into.primary_context_release);
  symbols.find("cuDevicePrimaryCtxGetState", into.primary_context_state);
  symbols.find("cuCtxPushCurrent_v2", into.context_push);
  symbols.find("cuCtxPopCurrent_v2", into.context_pop);
  symbols.find("cuMemAlloc_v2", into.allocate);
  symbols.find("cuMemAllocManaged", into.allocate_managed);
  symbols.find("cuMemFree_v2", into.free);
  symbols.find("cuMemHostAlloc", into.host_allocate);
  symbols.find("cuMemFreeHost", into.host_free);
  symbols.find("cuMemHostRegister_v2", into.host_register);
  symbols.find("cuMemHostUnregister", into.host_unregister);
  symbols.find("cuMemcpyHtoDAsync_v2", into.copy_to_device);
  symbols.find("cuMemcpyDtoHAsync_v2", into.copy_from_device);
  symbols.find("cuMemcpyDtoDAsync_v2", into.copy_within_devices);
  symbols.find("cuMemsetD8Async", into.fill);
  symbols.find("cuStreamCreate", into.stream_create);
  symbols.find("cuStreamSynchronize", into.stream_synchronize);
  symbols.find("cuStreamDestroy_v2", into.stream_destroy);
  symbols.find("cuStreamWaitEvent", into.stream_wait_event);
  symbols.find("cuEventCreate", into.event_create);
  symbols.find("cuEventRecord", into.event_record);
  symbols.find("cuEventQuery", into.event_query);
  symbols.find("cuEventSynchronize", into.event_synchronize);
  symbols.find("cuEventDestroy_v2", into.event_destroy);
  symbols.find("cuThreadExchangeStreamCaptureMode", into.exchange_capture_mode);
  symbols.find_some("cuIpcGetMemHandle", into.share);
  symbols.find_some("cuIpcOpenMemHandle_v2", into.open_shared);
  symbols.find_some("cuIpcCloseMemHandle", into.close_shared);
  symbols.find_some("cuMemGetAddressRange_v2", into.address_range);
  find_shared_by_descriptors(into, symbols);
  symbols.find_some("cuStreamGetCtx", into.stream_context);
  symbols.find_some("cuStreamIsCapturing", into.stream_is_capturing);
  symbols.find_some("cuStreamWaitValue32_v2", into.stream_wait_value);
  into.wait_value_has_to_be_allowed = into.stream_wait_value == nullptr;
  if (into.stream_wait_value == nullptr) {
    symbols.find_some("cuStreamWaitValue32", into.stream_wait_value);
  }
  symbols.find_some("cuMemHostGetDevicePointer_v2", into.host_device_pointer);
  symbols.find_some("cuCtxGetDevice", into.context_device);
  symbols.find_some("cuDeviceGetAttribute", into.device_attribute);
  symbols.find_some("cuFlushGPUDirectRDMAWrites", into.flush_adapter_writes);
  symbols.find("cuPointerGetAttributes", into.pointer_attributes);
  symbols.find("cuGetErrorName", into.error_name);
  symbols.find("cuGetErrorString", into.error_text);
  return symbols.complete();
}

std::unique_ptr<const cuda_driver> load_chosen(bool& lacks_functions) noexcept {
  try {
    const char* const named = ::secure_getenv("UCXIO_CUDA_DRIVER");
    auto loaded = cuda_driver::load(named != nullptr ? named : "libcuda.so.1", lacks_functions);
    // The program may use the usual one all the same, and have memory of devices.
    if (!loaded && named != nullptr) lacks_functions = true;
    return loaded;
  } catch (...) {  // out of memory
    return nullptr;
  }
}

}  // namespace

std::atomic<bool> has_no_cuda{false};

const cuda_driver* cuda_driver::find() noexcept {
  const cuda_driver* known = known_driver.load(std::memory_order_acquire);
  if (known == nullptr) {
    bool lacks_functions = false;
    auto loaded = load_chosen(lacks_functions);
    if (lacks_functions) lacks_some.store(true, std::memory_order_relaxed);
    const cuda_driver* const mine = loaded ? loaded.get() : &no_driver;
    if (known_driver.compare_exchange_strong(known, mine, std::memory_order_acq_rel)) {
      has_no_cuda.store(!loaded && !lacks_functions, std::memory_order_relaxed);
      known = mine;
      static_cast<void>(loaded.release());  // kept for good: what uses it may end after this
    }
  }
  return known == &no_driver ? nullptr : known;
}

bool cuda_driver::is_unusable() noexcept { return lacks_some.load(std::memory_order_relaxed); }

bool cuda_driver::may_be_inherited() noexcept { return was_forked.load(std::memory_order_relaxed); }

std::unique_ptr<const cuda_driver> cuda_driver::load(const char* library, bool& lacks_functions) {
  lacks_functions = false;
  void* const handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return nullptr;
  auto made = std::make_unique<cuda_driver>();
  if (find_all(*made, handle)) return made;
  lacks_functions = true;
  ::dlclose(handle);
  return nullptr;
}

bool cuda_driver::is_in_use() const noexcept {
  int devices = 0;
  return device_get_count(&devices) == cuda::success && devices > 0;
}

std::error_code cuda_error(cuda::result value) noexcept {
  switch (value) {
    case cuda::success:
      return {};
    case cuda::out_of_memory:
      return errc::no_memory;
    case cuda::invalid_value:
    case cuda::invalid_handle:
      return errc::invalid_argument;
    case cuda::not_initialized:  // of a child that was forked, too
    case cuda::deinitialized:
    case cuda::stub_library:
    case cuda::insufficient_driver:
    case cuda::no_device:
    case cuda::invalid_device:
    case cuda::not_supported:
    case cuda::driver_mismatch:
    case cuda::compatibility_not_supported:
      return errc::not_supported;
    default:
      return errc::io_error;
  }
}

std::string cuda_words(const cuda_driver& driver, const char* call, cuda::result value) {
  const char* name = nullptr;
  const char* text = nullptr;
  std::string words = std::string(call) + ": ";
  if (driver.error_name(value, &name) != cuda::success || name == nullptr) {
    return words + "CUDA error " + std::to_string(value);
  }
  words += name;
  if (driver.error_text(value, &text) == cuda::success && text != nullptr) {
    words += std::string(", ") + text;
  }
  return words;
}

}  // namespace ucx::detail
