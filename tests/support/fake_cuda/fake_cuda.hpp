// How tests look into the CUDA driver that they pretend to have. Its entry points have the names
// and types of the real one's; src/cuda/cuda_driver.hpp has those that the library uses.
#pragma once

#include <cstddef>
#include <cstdint>

/// CUipcMemHandle.
struct fake_cuda_handle {
  std::byte bytes[64];
};

/// CUmemAllocationProp, and CUmemAccessDesc.
struct fake_cuda_properties {
  int type;  // 1: pinned
  unsigned handle_types;
  int location_type;  // 1: a device
  int location;
  void* other;
  unsigned char flags[8];
};
struct fake_cuda_access {
  int location_type;
  int location;
  unsigned flags;  // 1: reads, 3: both
};
/// CUmemPoolProps.
struct fake_cuda_pool_properties {
  int type;
  unsigned handle_types;
  int location_type;
  int location;
  void* other;
  std::size_t most;
  unsigned char reserved[56];
};

extern "C" {

/// Makes everything new: `devices` devices, nothing allocated, nobody has initialised CUDA, no call
/// fails. `seed`, and what the environment's UCXIO_FAKE_CUDA_SEED adds to it, decide in which order
/// streams run. What was allocated before is no address of a
/// device any more, and still no memory for the host.
void fake_cuda_reset(int devices, std::uint64_t seed);

/// From the call `after` + 1 of `function` on (its name in cuda.h, without `_v2`), `times` calls
/// fail with `result`, and do nothing else. "copy" stands for a copy that fails when it runs. While
/// cuEventSynchronize has to fail, cuEventQuery says that nothing is over.
void fake_cuda_fail(const char* function, int after, int times, int result);

/// Has it answer CUDA_ERROR_INVALID_CONTEXT (201) where it is asked of memory that it does not
/// know.
void fake_cuda_refuse_unknown(int refuse);
/// What is allocated at `address`, its first one, is freed, and the same address given out again.
void fake_cuda_reallocate(std::uint64_t address);

/// Whether adapters of the network reach devices' memory, and which of cuda.h's orders their writes
/// have (0: none, 100: the owner's, which is the default, 200: all devices'). Without an order
/// nothing but adapters sees what they wrote until cuFlushGPUDirectRDMAWrites.
void fake_cuda_let_adapters_reach(int reach);
void fake_cuda_order_adapter_writes(int order);
/// Returns whether an adapter reaches these bytes.
int fake_cuda_adapter_reaches(std::uint64_t address, std::size_t size);
/// An adapter copies out of, or into, memory of a device, without any stream. Returns 0, or why it
/// can not (cuda.h's number).
int fake_cuda_adapter_read(void* into, std::uint64_t from, std::size_t size);
int fake_cuda_adapter_write(std::uint64_t into, const void* from, std::size_t size);

/// What UCX does with its own streams. Returns whether an address is of a device's memory, and
/// copies out of and into it. Each returns 0, or why it can not.
int fake_cuda_has(std::uint64_t address);
int fake_cuda_read_aside(void* into, std::uint64_t from, std::size_t size);
int fake_cuda_write_aside(std::uint64_t into, const void* from, std::size_t size);

/// How many calls of `function` there were.
std::uint64_t fake_cuda_calls(const char* function);

enum fake_cuda_direction {
  fake_cuda_to_device,
  fake_cuda_from_device,
  fake_cuda_within_devices,
  fake_cuda_within_host
};
std::uint64_t fake_cuda_copies(fake_cuda_direction direction);
std::uint64_t fake_cuda_bytes(fake_cuda_direction direction);

/// Holds copies back until it is called with 0 again.
void fake_cuda_hold_copies(int hold);
/// Holds back what was, or is, enqueued on one stream, likewise.
void fake_cuda_hold_stream(struct CUstream_st* stream, int hold);
/// What is enqueued on one stream goes into a graph, until it is called with 0.
void fake_cuda_capture_stream(struct CUstream_st* stream, int captures);
/// Devices allow, or not, what streams do to memory in the form of before CUDA 11.7.
void fake_cuda_allow_stream_mem_ops(int allow);
/// A graph is being captured, in the mode that forbids any thread what it might need.
void fake_cuda_begin_capture();
/// Returns whether nothing has spoiled it.
int fake_cuda_end_capture();
/// How many copies were asked for and have not run.
std::size_t fake_cuda_waiting_copies();

/// Bytes allocated on all devices, pinned and managed ones too; those of the program's that are
/// registered; streams, events and contexts in use.
std::size_t fake_cuda_allocated();
std::size_t fake_cuda_registered();
std::size_t fake_cuda_events();
std::size_t fake_cuda_streams();
std::size_t fake_cuda_contexts();
/// How often somebody wanted to use a context that was over. One of before the driver was made new
/// does not count: what a test has left behind because its device hung may let go of it late.
std::size_t fake_cuda_late_uses();
/// Memory of other processes that is open now.
std::size_t fake_cuda_opened();
/// Handles of cuMemCreate's that are not released, places where such memory is mapped, and ranges
/// of addresses that are reserved.
std::size_t fake_cuda_handles();
std::size_t fake_cuda_places();
std::size_t fake_cuda_reservations();
/// Pools of other processes that are imported now. Memory out of them counts as opened.
std::size_t fake_cuda_imported_pools();
/// Returns whether the calling thread is in a call of it, whose own allocations do not fail.
int fake_cuda_is_called();
/// Contexts that are pushed on the calling thread.
std::size_t fake_cuda_current();

/// What a device has in total; more can not be allocated there.
constexpr std::size_t fake_cuda_device_size = std::size_t{256} << 20U;

// What a program that uses CUDA calls, and the library does not. As of the real one, every call of
// a child that was forked once CUDA was initialised is refused.
int cuInit(unsigned flags);
int cuCtxCreate_v2(struct CUctx_st** made, unsigned flags, int device);
int cuCtxDestroy_v2(struct CUctx_st* context);
int cuDevicePrimaryCtxRetain(struct CUctx_st** made, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuCtxPushCurrent_v2(struct CUctx_st* context);
int cuCtxPopCurrent_v2(struct CUctx_st** context);
int cuMemAlloc_v2(std::uint64_t* made, std::size_t size);
int cuMemFree_v2(std::uint64_t address);
int cuMemAllocManaged(std::uint64_t* made, std::size_t size, unsigned flags);
int cuMemHostAlloc(void** made, std::size_t size, unsigned flags);
int cuMemFreeHost(void* made);
int cuMemcpy(std::uint64_t into, std::uint64_t from, std::size_t size);
int cuMemcpyAsync(std::uint64_t into, std::uint64_t from, std::size_t size,
                  struct CUstream_st* stream);
int cuMemsetD8Async(std::uint64_t into, unsigned char value, std::size_t size,
                    struct CUstream_st* stream);
int cuIpcGetMemHandle(fake_cuda_handle* made, std::uint64_t address);
int cuIpcOpenMemHandle_v2(std::uint64_t* opened, fake_cuda_handle shared, unsigned flags);
int cuIpcCloseMemHandle(std::uint64_t opened);
int cuStreamCreate(struct CUstream_st** made, unsigned flags);
int cuStreamSynchronize(struct CUstream_st* stream);
int cuStreamWaitValue32_v2(struct CUstream_st* stream, std::uint64_t word, std::uint32_t value,
                           unsigned flags);
int cuMemHostRegister_v2(void* memory, std::size_t size, unsigned flags);
int cuMemHostGetDevicePointer_v2(std::uint64_t* seen, void* memory, unsigned flags);
int cuFlushGPUDirectRDMAWrites(int target, int scope);
int cuDeviceGetAttribute(int* value, int attribute, int device);
int cuDeviceGet(int* made, int ordinal);
int cuPointerGetAttributes(unsigned count, int* attributes, void** values, std::uint64_t address);
int cuMemGetAddressRange_v2(std::uint64_t* begin, std::size_t* size, std::uint64_t address);
int cuMemCreate(std::uint64_t* made, std::size_t size, const fake_cuda_properties* wanted,
                unsigned long long flags);
int cuMemRelease(std::uint64_t handle);
int cuMemRetainAllocationHandle(std::uint64_t* made, void* address);
int cuMemExportToShareableHandle(void* made, std::uint64_t handle, unsigned type,
                                 unsigned long long flags);
int cuMemImportFromShareableHandle(std::uint64_t* made, void* shared, unsigned type);
int cuMemAddressReserve(std::uint64_t* made, std::size_t size, std::size_t alignment,
                        std::uint64_t hint, unsigned long long flags);
int cuMemAddressFree(std::uint64_t address, std::size_t size);
int cuMemMap(std::uint64_t address, std::size_t size, std::size_t offset, std::uint64_t handle,
             unsigned long long flags);
int cuMemUnmap(std::uint64_t address, std::size_t size);
int cuMemSetAccess(std::uint64_t address, std::size_t size, const fake_cuda_access* wanted,
                   std::size_t count);
int cuMemPoolCreate(struct CUmemPoolHandle_st** made, const fake_cuda_pool_properties* wanted);
int cuMemPoolDestroy(struct CUmemPoolHandle_st* pool);
int cuMemAllocFromPoolAsync(std::uint64_t* made, std::size_t size, struct CUmemPoolHandle_st* pool,
                            struct CUstream_st* stream);
int cuMemPoolExportToShareableHandle(void* made, struct CUmemPoolHandle_st* pool, unsigned type,
                                     unsigned long long flags);
int cuMemPoolExportPointer(fake_cuda_handle* made, std::uint64_t address);
int cuMemPoolImportFromShareableHandle(struct CUmemPoolHandle_st** made, void* shared,
                                       unsigned type, unsigned long long flags);
int cuMemPoolImportPointer(std::uint64_t* made, struct CUmemPoolHandle_st* pool,
                           fake_cuda_handle* shared);
int cuMemPoolSetAccess(struct CUmemPoolHandle_st* pool, const fake_cuda_access* wanted,
                       std::size_t count);
}
