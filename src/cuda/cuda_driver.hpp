// The functions of the CUDA driver: found at run time, so that one program works with and without
// it. CUDA's headers are not needed: the few types and numbers in use are its ABI.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <system_error>

#include "ucx/memory_resources.hpp"

struct CUctx_st;
struct CUevent_st;
struct CUmemPoolHandle_st;
struct CUstream_st;

namespace ucx::detail {

/// CUDA's own types, under their names less the prefix.
namespace cuda {
using result = int;
using device = int;
using address = unsigned long long;  // NOLINT(google-runtime-int): CUdeviceptr
using context = CUctx_st*;
using stream = CUstream_st*;
using event = CUevent_st*;
using pool = CUmemPoolHandle_st*;
using allocation = unsigned long long;  // NOLINT(google-runtime-int): CUmemGenericAllocationHandle
/// CUipcMemHandle, which is passed by its value.
struct memory_handle {
  std::array<std::byte, 64> bytes = {};
};
/// CUmemPoolPtrExportData.
struct pool_pointer {
  std::array<std::byte, 64> bytes = {};
};
/// CUmemAccessDesc: what a device may do.
struct access {
  int location_type = 1;  // a device
  int device = 0;
  unsigned flags = 0;
};

constexpr result success = 0;
constexpr result invalid_value = 1;
constexpr result out_of_memory = 2;
constexpr result not_initialized = 3;
constexpr result deinitialized = 4;
constexpr result stub_library = 34;
constexpr result insufficient_driver = 35;
constexpr result no_device = 100;
constexpr result invalid_device = 101;
constexpr result invalid_context = 201;
constexpr result already_mapped = 208;
constexpr result invalid_handle = 400;
constexpr result not_ready = 600;
constexpr result illegal_address = 700;
constexpr result already_registered = 712;
constexpr result not_supported = 801;
constexpr result driver_mismatch = 803;
constexpr result compatibility_not_supported = 804;
constexpr result capture_implicit = 906;

constexpr int attribute_context = 1;
constexpr int attribute_memory_type = 2;
constexpr int attribute_buffer_id = 7;
constexpr int attribute_is_managed = 8;
constexpr int attribute_device = 9;
constexpr int attribute_has_ipc_handle = 10;
constexpr int attribute_range_start = 11;
constexpr int attribute_range_size = 12;
constexpr int attribute_handle_types = 14;
constexpr int attribute_pool = 17;
constexpr unsigned type_host = 1;
constexpr unsigned type_device = 2;

constexpr unsigned attach_global = 1;
constexpr unsigned host_portable = 1;
constexpr unsigned register_portable = 1;
constexpr unsigned register_device_map = 2;
constexpr unsigned stream_non_blocking = 1;
constexpr unsigned event_blocking_sync = 1;
constexpr unsigned event_disable_timing = 2;
constexpr int capture_relaxed = 2;
constexpr unsigned lazy_peer_access = 1;
constexpr unsigned handle_type_descriptor = 1;
constexpr unsigned access_read = 1;
constexpr unsigned access_read_write = 3;
constexpr unsigned wait_value_geq = 0;
constexpr int attribute_stream_mem_ops = 92;  ///< Of a device.
}  // namespace cuda

/// One function pointer for each function in use, all of them there: those of CUDA 11 and newer.
/// Never changes; the library stays loaded.
struct cuda_driver {
  cuda::result (*init)(unsigned flags) = nullptr;
  cuda::result (*device_get_count)(int* count) = nullptr;
  cuda::result (*device_get)(cuda::device* device, int ordinal) = nullptr;
  cuda::result (*primary_context_retain)(cuda::context* context, cuda::device device) = nullptr;
  cuda::result (*primary_context_release)(cuda::device device) = nullptr;
  cuda::result (*primary_context_state)(cuda::device device, unsigned* flags,
                                        int* active) = nullptr;
  cuda::result (*context_push)(cuda::context context) = nullptr;
  cuda::result (*context_pop)(cuda::context* context) = nullptr;
  cuda::result (*allocate)(cuda::address* made, std::size_t size) = nullptr;
  cuda::result (*allocate_managed)(cuda::address* made, std::size_t size, unsigned flags) = nullptr;
  cuda::result (*free)(cuda::address made) = nullptr;
  cuda::result (*host_allocate)(void** made, std::size_t size, unsigned flags) = nullptr;
  cuda::result (*host_free)(void* made) = nullptr;
  cuda::result (*host_register)(void* memory, std::size_t size, unsigned flags) = nullptr;
  cuda::result (*host_unregister)(void* memory) = nullptr;
  /// Each says which side is a device's. `cuMemcpyAsync` would infer it, and take freed memory for
  /// the processor's.
  cuda::result (*copy_to_device)(cuda::address into, const void* from, std::size_t size,
                                 cuda::stream stream) = nullptr;
  cuda::result (*copy_from_device)(void* into, cuda::address from, std::size_t size,
                                   cuda::stream stream) = nullptr;
  /// Takes both for a device's, of whatever contexts.
  cuda::result (*copy_within_devices)(cuda::address into, cuda::address from, std::size_t size,
                                      cuda::stream stream) = nullptr;
  cuda::result (*fill)(cuda::address into, unsigned char value, std::size_t size,
                       cuda::stream stream) = nullptr;
  cuda::result (*stream_create)(cuda::stream* made, unsigned flags) = nullptr;
  cuda::result (*stream_synchronize)(cuda::stream stream) = nullptr;
  cuda::result (*stream_destroy)(cuda::stream stream) = nullptr;
  cuda::result (*stream_wait_event)(cuda::stream stream, cuda::event event,
                                    unsigned flags) = nullptr;
  cuda::result (*event_create)(cuda::event* made, unsigned flags) = nullptr;
  cuda::result (*event_record)(cuda::event event, cuda::stream stream) = nullptr;
  cuda::result (*event_query)(cuda::event event) = nullptr;
  cuda::result (*event_synchronize)(cuda::event event) = nullptr;
  cuda::result (*event_destroy)(cuda::event event) = nullptr;
  cuda::result (*exchange_capture_mode)(int* mode) = nullptr;
  // Of memory that processes share: null where the driver's platform has no such thing.
  cuda::result (*share)(cuda::memory_handle* made, cuda::address allocation) = nullptr;
  cuda::result (*open_shared)(cuda::address* opened, cuda::memory_handle shared,
                              unsigned flags) = nullptr;
  cuda::result (*close_shared)(cuda::address opened) = nullptr;
  // Of memory that is shared by descriptors: likewise, or where the driver is older.
  /// Of one mapping, where a reservation of addresses has several.
  cuda::result (*address_range)(cuda::address* begin, std::size_t* size,
                                cuda::address address) = nullptr;
  cuda::result (*retain_allocation)(cuda::allocation* retained, void* address) = nullptr;
  cuda::result (*release_allocation)(cuda::allocation allocation) = nullptr;
  cuda::result (*export_allocation)(void* made, cuda::allocation allocation, unsigned type,
                                    unsigned long long flags) = nullptr;  // NOLINT: its type
  cuda::result (*import_allocation)(cuda::allocation* made, void* shared, unsigned type) = nullptr;
  cuda::result (*reserve_addresses)(cuda::address* made, std::size_t size, std::size_t alignment,
                                    cuda::address hint,
                                    unsigned long long flags) = nullptr;  // NOLINT: its type
  cuda::result (*free_addresses)(cuda::address begin, std::size_t size) = nullptr;
  cuda::result (*map)(cuda::address begin, std::size_t size, std::size_t offset,
                      cuda::allocation allocation,
                      unsigned long long flags) = nullptr;  // NOLINT: its type
  cuda::result (*unmap)(cuda::address begin, std::size_t size) = nullptr;
  cuda::result (*set_access)(cuda::address begin, std::size_t size, const cuda::access* wanted,
                             std::size_t count) = nullptr;
  // Likewise: of memory of a pool.
  cuda::result (*export_pool)(void* made, cuda::pool pool, unsigned type,
                              unsigned long long flags) = nullptr;  // NOLINT: its type
  cuda::result (*export_pool_pointer)(cuda::pool_pointer* made, cuda::address allocation) = nullptr;
  cuda::result (*import_pool)(cuda::pool* made, void* shared, unsigned type,
                              unsigned long long flags) = nullptr;  // NOLINT: its type
  cuda::result (*import_pool_pointer)(cuda::address* made, cuda::pool pool,
                                      cuda::pool_pointer* shared) = nullptr;
  cuda::result (*set_pool_access)(cuda::pool pool, const cuda::access* wanted,
                                  std::size_t count) = nullptr;
  cuda::result (*destroy_pool)(cuda::pool pool) = nullptr;
  // Of streams that wait for a word of memory: likewise, or where the driver is older.
  cuda::result (*stream_context)(cuda::stream stream, cuda::context* context) = nullptr;
  cuda::result (*stream_is_capturing)(cuda::stream stream, int* status) = nullptr;
  /// Until `(int)(word - value) >= 0`, which ignores that numbers wrap.
  cuda::result (*stream_wait_value)(cuda::stream stream, cuda::address word, std::uint32_t value,
                                    unsigned flags) = nullptr;
  cuda::result (*host_device_pointer)(cuda::address* seen, void* memory, unsigned flags) = nullptr;
  cuda::result (*context_device)(cuda::device* device) = nullptr;
  cuda::result (*device_attribute)(int* value, int attribute, cuda::device device) = nullptr;
  /// Of what network adapters wrote: null where the driver is older than CUDA 11.3.
  cuda::result (*flush_adapter_writes)(int target, int scope) = nullptr;
  /// Whether `stream_wait_value` is the form of before CUDA 11.7, which devices have to allow.
  bool wait_value_has_to_be_allowed = false;
  cuda::result (*pointer_attributes)(unsigned count, int* attributes, void** values,
                                     cuda::address address) = nullptr;
  cuda::result (*error_name)(cuda::result value, const char** name) = nullptr;
  cuda::result (*error_text)(cuda::result value, const char** text) = nullptr;

  /// Returns the process's driver, or null. It is looked for once, in `libcuda.so.1` or what the
  /// environment's `UCXIO_CUDA_DRIVER` names instead. Nothing is initialised by that.
  static const cuda_driver* find() noexcept;

  /// Returns whether this process was forked since the library was loaded: what its parent had of
  /// CUDA's is not here.
  static bool may_be_inherited() noexcept;

  /// Returns whether find() returned null though there is a library of that name, which lacks
  /// functions, or `UCXIO_CUDA_DRIVER` names one that can not be loaded. Other code in the process
  /// may then use a driver, and have memory of devices.
  static bool is_unusable() noexcept;

  /// Returns false where find() has found no library.
  static bool may_be_there() noexcept { return !has_no_cuda.load(std::memory_order_relaxed); }

  /// Loads `library`. Returns nothing where there is no such library, or a function is missing,
  /// which `lacks_functions` then tells.
  static std::unique_ptr<const cuda_driver> load(const char* library, bool& lacks_functions);

  bool shares_memory() const noexcept {
    return share != nullptr && open_shared != nullptr && close_shared != nullptr;
  }
  /// Whether memory of `cuMemMap` is shared by descriptors, and memory of pools.
  bool shares_allocations() const noexcept {
    return address_range != nullptr && retain_allocation != nullptr &&
           release_allocation != nullptr && export_allocation != nullptr &&
           import_allocation != nullptr && reserve_addresses != nullptr &&
           free_addresses != nullptr && map != nullptr && unmap != nullptr && set_access != nullptr;
  }
  bool shares_pools() const noexcept {
    return address_range != nullptr && export_pool != nullptr && export_pool_pointer != nullptr &&
           import_pool != nullptr && import_pool_pointer != nullptr && set_pool_access != nullptr &&
           destroy_pool != nullptr;
  }
  bool holds_streams() const noexcept {
    return stream_context != nullptr && stream_is_capturing != nullptr &&
           stream_wait_value != nullptr && host_device_pointer != nullptr &&
           context_device != nullptr && device_attribute != nullptr;
  }
  /// Returns whether somebody in this process has initialised CUDA, and the process was not forked
  /// since. Initialises nothing.
  bool is_in_use() const noexcept;
};

/// Returns what a result is to users: no_memory, not_supported (no device, no driver for it),
/// invalid_argument, or io_error; nothing for success.
std::error_code cuda_error(cuda::result value) noexcept;

/// Returns "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY, out of memory": the call, and the driver's words.
std::string cuda_words(const cuda_driver& driver, const char* call, cuda::result value);

}  // namespace ucx::detail
