// The entry points of the pretended driver.
#include "fake_cuda.hpp"

#include <array>
#include <cstdlib>
#include <string>
#include <utility>

#include "fake_device.hpp"

namespace {

using ucx::test::fake_copy;
using ucx::test::fake_cuda;
using ucx::test::fake_kind;
using ucx::test::fake_memory;

fake_cuda& driver() { return fake_cuda::instance(); }

/// What the environment adds to each seed: so one program's tests run in other orders.
std::uint64_t added_to_seeds() {
  static const std::uint64_t added = [] {
    const char* const text = std::getenv("UCXIO_FAKE_CUDA_SEED");
    return text != nullptr ? std::strtoull(text, nullptr, 10) : 0;
  }();
  return added;
}

thread_local int calls_here = 0;

struct within_call {
  within_call() noexcept { ++calls_here; }
  within_call(const within_call&) = delete;
  within_call& operator=(const within_call&) = delete;
  ~within_call() { --calls_here; }
};

/// Does `call`, unless it has to fail.
template <class Call>
int answer(const char* function, Call&& call) {
  const within_call here;
  if (driver().is_inherited()) return 3;
  const int failure = driver().enter(function);
  return failure != 0 ? failure : std::forward<Call>(call)();
}

constexpr std::array<std::pair<int, const char*>, 15> names{{
    {0, "CUDA_SUCCESS"},
    {1, "CUDA_ERROR_INVALID_VALUE"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY"},
    {3, "CUDA_ERROR_NOT_INITIALIZED"},
    {100, "CUDA_ERROR_NO_DEVICE"},
    {101, "CUDA_ERROR_INVALID_DEVICE"},
    {201, "CUDA_ERROR_INVALID_CONTEXT"},
    {205, "CUDA_ERROR_MAP_FAILED"},
    {208, "CUDA_ERROR_ALREADY_MAPPED"},
    {400, "CUDA_ERROR_INVALID_HANDLE"},
    {500, "CUDA_ERROR_NOT_FOUND"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
    {719, "CUDA_ERROR_LAUNCH_FAILED"},
    {801, "CUDA_ERROR_NOT_SUPPORTED"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
}};

const char* name_of(int value) {
  for (const auto& [number, name] : names) {
    if (number == value) return name;
  }
  return nullptr;
}

/// Writes one attribute of a pointer; zeros for memory that CUDA does not know.
int tell(int attribute, void* into, const std::optional<fake_memory>& memory) {
  constexpr unsigned host = 1;
  constexpr unsigned device = 2;
  switch (attribute) {
    case 1:
      *static_cast<CUctx_st**>(into) = memory ? memory->context : nullptr;
      return 0;
    case 2:
      *static_cast<unsigned*>(into) =
          !memory ? 0U : (memory->kind == fake_kind::pinned ? host : device);
      return 0;
    case 7:
      *static_cast<unsigned long long*>(into) = memory ? memory->number : 0;
      return 0;
    case 8:
      *static_cast<unsigned*>(into) = memory && memory->kind == fake_kind::managed ? 1U : 0U;
      return 0;
    case 9:
      *static_cast<int*>(into) =
          !memory ? -2 : (memory->context != nullptr ? memory->context->device : memory->device);
      return 0;
    case 10:
      *static_cast<unsigned*>(into) = memory && memory->kind == fake_kind::device ? 1U : 0U;
      return 0;
    case 11:
      *static_cast<std::uint64_t*>(into) = memory ? driver().mappable_range(*memory).first : 0;
      return 0;
    case 12:
      *static_cast<std::size_t*>(into) = memory ? driver().mappable_range(*memory).second : 0;
      return 0;
    case 14:
      *static_cast<std::uint64_t*>(into) = memory ? driver().handle_types_of(*memory) : 0;
      return 0;
    case 15:
      *static_cast<unsigned*>(into) =
          memory && driver().do_adapters_reach(memory->address, memory->size) ? 1U : 0U;
      return 0;
    case 17:
      *static_cast<CUmemPoolHandle_st**>(into) = memory ? memory->pool : nullptr;
      return 0;
    default:
      return 1;
  }
}

}  // namespace

extern "C" {

void fake_cuda_reset(int devices, std::uint64_t seed) {
  driver().reset(devices, seed + added_to_seeds());
}
void fake_cuda_fail(const char* function, int after, int times, int result) {
  driver().fail(function, after, times, result);
}
void fake_cuda_refuse_unknown(int refuse) { driver().refuse_unknown(refuse != 0); }
void fake_cuda_reallocate(std::uint64_t address) { driver().reallocate(address); }
void fake_cuda_let_adapters_reach(int reach) { driver().let_adapters_reach(reach != 0); }
void fake_cuda_order_adapter_writes(int order) { driver().order_adapter_writes(order); }
int fake_cuda_adapter_reaches(std::uint64_t address, std::size_t size) {
  return driver().do_adapters_reach(address, size) ? 1 : 0;
}
int fake_cuda_adapter_read(void* into, std::uint64_t from, std::size_t size) {
  return driver().read_by_adapter(into, from, size);
}
int fake_cuda_adapter_write(std::uint64_t into, const void* from, std::size_t size) {
  return driver().write_by_adapter(into, from, size);
}
int fake_cuda_has(std::uint64_t address) {
  const std::optional<fake_memory> found = driver().find(address);
  return found && found->kind != fake_kind::pinned ? 1 : 0;
}
int fake_cuda_read_aside(void* into, std::uint64_t from, std::size_t size) {
  return driver().copy_aside(from, into, size, false);
}
int fake_cuda_write_aside(std::uint64_t into, const void* from, std::size_t size) {
  return driver().copy_aside(into, const_cast<void*>(from), size, true);
}
std::uint64_t fake_cuda_calls(const char* function) { return driver().calls(function); }
std::uint64_t fake_cuda_copies(fake_cuda_direction direction) { return driver().copies(direction); }
std::uint64_t fake_cuda_bytes(fake_cuda_direction direction) { return driver().bytes(direction); }
void fake_cuda_hold_copies(int hold) { driver().hold_copies(hold != 0); }
void fake_cuda_hold_stream(CUstream_st* stream, int hold) {
  driver().hold_stream(stream, hold != 0);
}
void fake_cuda_capture_stream(CUstream_st* stream, int captures) {
  driver().capture_stream(stream, captures != 0);
}
void fake_cuda_allow_stream_mem_ops(int allow) { driver().allow_stream_mem_ops(allow != 0); }
void fake_cuda_begin_capture() { driver().begin_capture(); }
int fake_cuda_end_capture() { return driver().end_capture() ? 1 : 0; }
std::size_t fake_cuda_registered() { return driver().registered(); }
std::size_t fake_cuda_events() { return driver().events(); }
std::size_t fake_cuda_late_uses() { return driver().late_uses(); }
std::size_t fake_cuda_waiting_copies() { return driver().waiting_copies(); }
std::size_t fake_cuda_allocated() { return driver().allocated(); }
std::size_t fake_cuda_streams() { return driver().streams(); }
std::size_t fake_cuda_contexts() { return driver().contexts(); }
std::size_t fake_cuda_opened() { return driver().opened(); }
std::size_t fake_cuda_handles() { return driver().handles(); }
std::size_t fake_cuda_places() { return driver().places(); }
std::size_t fake_cuda_reservations() { return driver().reservations(); }
std::size_t fake_cuda_imported_pools() { return driver().imported_pools(); }
int fake_cuda_is_called() { return calls_here > 0 ? 1 : 0; }
std::size_t fake_cuda_current() { return ucx::test::context_stack().size(); }

int cuInit(unsigned) {
  return answer("cuInit", [] { return driver().devices() > 0 ? driver().initialise() : 100; });
}
int cuDeviceGetCount(int* count) {
  return answer("cuDeviceGetCount", [&] {
    if (!driver().is_initialised()) return 3;
    *count = driver().devices();
    return 0;
  });
}
int cuDeviceGet(int* device, int ordinal) {
  return answer("cuDeviceGet", [&] {
    *device = driver().number_of(ordinal);
    return ordinal >= 0 && ordinal < driver().devices() ? 0 : 101;
  });
}
int cuDevicePrimaryCtxRetain(CUctx_st** made, int device) {
  return answer("cuDevicePrimaryCtxRetain",
                [&] { return driver().retain(made, driver().ordinal_of(device)); });
}
int cuDevicePrimaryCtxRelease_v2(int device) {
  return answer("cuDevicePrimaryCtxRelease",
                [&] { return driver().release(driver().ordinal_of(device)); });
}
int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  return answer("cuDevicePrimaryCtxGetState", [&] {
    *flags = 0;
    return driver().is_active(driver().ordinal_of(device), active);
  });
}
int cuCtxCreate_v2(CUctx_st** made, unsigned, int device) {
  return answer("cuCtxCreate", [&] { return driver().create(made, driver().ordinal_of(device)); });
}
int cuCtxDestroy_v2(CUctx_st* context) {
  return answer("cuCtxDestroy", [&] { return driver().destroy(context); });
}
int cuCtxPushCurrent_v2(CUctx_st* context) {
  return answer("cuCtxPushCurrent", [&] { return driver().push(context); });
}
int cuCtxPopCurrent_v2(CUctx_st** context) {
  return answer("cuCtxPopCurrent", [&] { return driver().pop(context); });
}
int cuMemAlloc_v2(std::uint64_t* made, std::size_t size) {
  return answer("cuMemAlloc", [&] { return driver().allocate(fake_kind::device, size, made); });
}
int cuMemAllocManaged(std::uint64_t* made, std::size_t size, unsigned) {
  return answer("cuMemAllocManaged",
                [&] { return driver().allocate(fake_kind::managed, size, made); });
}
int cuMemFree_v2(std::uint64_t address) {
  return answer("cuMemFree", [&] { return driver().free(address, false); });
}
int cuMemHostAlloc(void** made, std::size_t size, unsigned) {
  return answer("cuMemHostAlloc", [&] {
    std::uint64_t address = 0;
    const int result = driver().allocate(fake_kind::pinned, size, &address);
    *made = reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
    return result;
  });
}
int cuMemFreeHost(void* made) {
  return answer("cuMemFreeHost",
                [&] { return driver().free(reinterpret_cast<std::uintptr_t>(made), true); });
}
int cuMemHostRegister_v2(void* memory, std::size_t size, unsigned) {
  return answer("cuMemHostRegister", [&] { return driver().enlist(memory, size); });
}
int cuMemHostUnregister(void* memory) {
  return answer("cuMemHostUnregister", [&] { return driver().strike_off(memory); });
}
int cuMemcpy(std::uint64_t into, std::uint64_t from, std::size_t size) {
  return answer("cuMemcpy", [&] { return driver().copy_now({into, from, size}); });
}
int cuMemcpyAsync(std::uint64_t into, std::uint64_t from, std::size_t size, CUstream_st* stream) {
  return answer("cuMemcpyAsync", [&] { return driver().start(stream, {into, from, size}); });
}
// By the name of all copies they are made to fail.
int cuMemcpyHtoDAsync_v2(std::uint64_t into, const void* from, std::size_t size,
                         CUstream_st* stream) {
  return answer("cuMemcpyAsync", [&] {
    if (!driver().find(into)) return 1;
    return driver().start(stream, {into, reinterpret_cast<std::uintptr_t>(from), size});
  });
}
int cuMemcpyDtoHAsync_v2(void* into, std::uint64_t from, std::size_t size, CUstream_st* stream) {
  return answer("cuMemcpyAsync", [&] {
    if (!driver().find(from)) return 1;
    return driver().start(stream, {reinterpret_cast<std::uintptr_t>(into), from, size});
  });
}
int cuMemcpyDtoDAsync_v2(std::uint64_t into, std::uint64_t from, std::size_t size,
                         CUstream_st* stream) {
  return answer("cuMemcpyAsync", [&] {
    if (!driver().find(into) || !driver().find(from)) return 1;
    return driver().start(stream, {into, from, size});
  });
}
int cuIpcGetMemHandle(fake_cuda_handle* made, std::uint64_t address) {
  return answer("cuIpcGetMemHandle", [&] { return driver().share(address, made); });
}
int cuIpcOpenMemHandle_v2(std::uint64_t* opened, fake_cuda_handle shared, unsigned flags) {
  return answer("cuIpcOpenMemHandle",
                [&] { return flags == 1 ? driver().open_shared(shared, opened) : 1; });
}
int cuIpcCloseMemHandle(std::uint64_t opened) {
  return answer("cuIpcCloseMemHandle", [&] { return driver().close_shared(opened); });
}
int cuMemGetAddressRange_v2(std::uint64_t* begin, std::size_t* size, std::uint64_t address) {
  return answer("cuMemGetAddressRange", [&] { return driver().range_of(begin, size, address); });
}
int cuMemCreate(std::uint64_t* made, std::size_t size, const fake_cuda_properties* wanted,
                unsigned long long) {
  return answer("cuMemCreate", [&] { return driver().create_allocation(made, size, *wanted); });
}
int cuMemRelease(std::uint64_t handle) {
  return answer("cuMemRelease", [&] { return driver().release_allocation(handle); });
}
int cuMemRetainAllocationHandle(std::uint64_t* made, void* address) {
  return answer("cuMemRetainAllocationHandle", [&] {
    return driver().retain_allocation(made, reinterpret_cast<std::uintptr_t>(address));
  });
}
int cuMemExportToShareableHandle(void* made, std::uint64_t handle, unsigned type,
                                 unsigned long long flags) {
  return answer("cuMemExportToShareableHandle", [&] {
    return flags == 0 ? driver().export_allocation(static_cast<int*>(made), handle, type) : 1;
  });
}
int cuMemImportFromShareableHandle(std::uint64_t* made, void* shared, unsigned type) {
  return answer("cuMemImportFromShareableHandle", [&] {
    const auto file = static_cast<int>(reinterpret_cast<std::uintptr_t>(shared));
    return driver().import_allocation(made, file, type);
  });
}
int cuMemAddressReserve(std::uint64_t* made, std::size_t size, std::size_t, std::uint64_t,
                        unsigned long long flags) {
  return answer("cuMemAddressReserve",
                [&] { return flags == 0 ? driver().reserve_addresses(made, size) : 1; });
}
int cuMemAddressFree(std::uint64_t address, std::size_t size) {
  return answer("cuMemAddressFree", [&] { return driver().free_addresses(address, size); });
}
int cuMemMap(std::uint64_t address, std::size_t size, std::size_t offset, std::uint64_t handle,
             unsigned long long flags) {
  return answer("cuMemMap",
                [&] { return flags == 0 ? driver().map(address, size, offset, handle) : 1; });
}
int cuMemUnmap(std::uint64_t address, std::size_t size) {
  return answer("cuMemUnmap", [&] { return driver().unmap(address, size); });
}
int cuMemSetAccess(std::uint64_t address, std::size_t size, const fake_cuda_access* wanted,
                   std::size_t count) {
  return answer("cuMemSetAccess",
                [&] { return driver().set_access(address, size, wanted, count); });
}
int cuMemPoolCreate(CUmemPoolHandle_st** made, const fake_cuda_pool_properties* wanted) {
  return answer("cuMemPoolCreate", [&] {
    if (wanted->type != 1 || wanted->location_type != 1) return 1;
    return driver().make_pool(made, wanted->handle_types, wanted->location);
  });
}
int cuMemPoolDestroy(CUmemPoolHandle_st* pool) {
  return answer("cuMemPoolDestroy", [&] { return driver().end_pool(pool); });
}
int cuMemAllocFromPoolAsync(std::uint64_t* made, std::size_t size, CUmemPoolHandle_st* pool,
                            CUstream_st*) {
  return answer("cuMemAllocFromPoolAsync",
                [&] { return driver().allocate_from_pool(made, size, pool); });
}
int cuMemPoolExportToShareableHandle(void* made, CUmemPoolHandle_st* pool, unsigned type,
                                     unsigned long long flags) {
  return answer("cuMemPoolExportToShareableHandle", [&] {
    return flags == 0 ? driver().export_pool(static_cast<int*>(made), pool, type) : 1;
  });
}
int cuMemPoolExportPointer(fake_cuda_handle* made, std::uint64_t address) {
  return answer("cuMemPoolExportPointer",
                [&] { return driver().export_pool_pointer(made, address); });
}
int cuMemPoolImportFromShareableHandle(CUmemPoolHandle_st** made, void* shared, unsigned type,
                                       unsigned long long flags) {
  return answer("cuMemPoolImportFromShareableHandle", [&] {
    const auto file = static_cast<int>(reinterpret_cast<std::uintptr_t>(shared));
    return flags == 0 ? driver().import_pool(made, file, type) : 1;
  });
}
int cuMemPoolImportPointer(std::uint64_t* made, CUmemPoolHandle_st* pool,
                           fake_cuda_handle* shared) {
  return answer("cuMemPoolImportPointer",
                [&] { return driver().import_pool_pointer(made, pool, *shared); });
}
int cuMemPoolSetAccess(CUmemPoolHandle_st* pool, const fake_cuda_access* wanted,
                       std::size_t count) {
  return answer("cuMemPoolSetAccess",
                [&] { return driver().set_pool_access(pool, wanted, count); });
}
int cuMemsetD8Async(std::uint64_t into, unsigned char value, std::size_t size,
                    CUstream_st* stream) {
  return answer("cuMemsetD8Async", [&] { return driver().start(stream, {into, 0, size, value}); });
}
int cuStreamCreate(CUstream_st** made, unsigned) {
  return answer("cuStreamCreate", [&] { return driver().make_stream(made); });
}
int cuStreamSynchronize(CUstream_st* stream) {
  return answer("cuStreamSynchronize", [&] { return driver().wait_for(stream); });
}
int cuStreamDestroy_v2(CUstream_st* stream) {
  return answer("cuStreamDestroy", [&] { return driver().end_stream(stream); });
}
int cuStreamWaitEvent(CUstream_st* stream, CUevent_st* event, unsigned) {
  return answer("cuStreamWaitEvent", [&] { return driver().await(stream, event); });
}
int cuStreamGetCtx(CUstream_st* stream, CUctx_st** context) {
  return answer("cuStreamGetCtx", [&] { return driver().context_of(stream, context); });
}
int cuStreamIsCapturing(CUstream_st* stream, int* status) {
  return answer("cuStreamIsCapturing", [&] { return driver().is_capturing(stream, status); });
}
int cuStreamWaitValue32_v2(CUstream_st* stream, std::uint64_t word, std::uint32_t value,
                           unsigned flags) {
  return answer("cuStreamWaitValue32",
                [&] { return driver().await_word(stream, word, value, flags); });
}
int cuMemHostGetDevicePointer_v2(std::uint64_t* seen, void* memory, unsigned) {
  return answer("cuMemHostGetDevicePointer", [&] { return driver().seen_by_device(memory, seen); });
}
int cuCtxGetDevice(int* device) {
  return answer("cuCtxGetDevice", [&] { return driver().device_of_context(device); });
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  return answer("cuDeviceGetAttribute",
                [&] { return driver().attribute_of_device(attribute, device, value); });
}
int cuFlushGPUDirectRDMAWrites(int target, int scope) {
  return answer("cuFlushGPUDirectRDMAWrites",
                [&] { return driver().flush_adapter_writes(target, scope); });
}
int cuEventCreate(CUevent_st** made, unsigned) {
  return answer("cuEventCreate", [&] { return driver().make_event(made); });
}
int cuEventRecord(CUevent_st* event, CUstream_st* stream) {
  return answer("cuEventRecord", [&] { return driver().record(event, stream); });
}
int cuEventQuery(CUevent_st* event) {
  return answer("cuEventQuery", [&] { return driver().look_at(event); });
}
int cuEventSynchronize(CUevent_st* event) {
  return answer("cuEventSynchronize", [&] { return driver().wait_for(event); });
}
int cuEventDestroy_v2(CUevent_st* event) {
  return answer("cuEventDestroy", [&] { return driver().end_event(event); });
}
int cuThreadExchangeStreamCaptureMode(int* mode) {
  return answer("cuThreadExchangeStreamCaptureMode", [&] {
    if (!driver().is_initialised()) return 3;
    std::swap(*mode, ucx::test::capture_mode());
    return 0;
  });
}
int cuPointerGetAttributes(unsigned count, int* attributes, void** values, std::uint64_t address) {
  return answer("cuPointerGetAttributes", [&] {
    if (!driver().is_initialised()) return 3;
    const std::optional<fake_memory> memory = driver().find(address);
    int result = !memory && driver().refuses_unknown() ? 201 : 0;
    for (unsigned i = 0; i < count && result == 0; ++i) {
      result = tell(attributes[i], values[i], memory);
    }
    return result;
  });
}
int cuGetErrorName(int value, const char** name) {
  *name = name_of(value);
  return *name != nullptr ? 0 : 1;
}
int cuGetErrorString(int value, const char** text) {
  *text = name_of(value) != nullptr ? "what the pretended driver says of it" : nullptr;
  return *text != nullptr ? 0 : 1;
}
}
