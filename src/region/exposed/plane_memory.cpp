#include "region/exposed/plane_memory.hpp"

#include <cstdint>
#include <string>
#include <utility>

#include "cuda/adapter_writes.hpp"
#include "ucp/packed_key.hpp"
#include "ucp/registration_cache.hpp"
#include "ucp/status.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

constexpr std::size_t longest_plane_address = std::size_t{16} << 10U;  // as descriptors carry it

unsigned device_protection(access granted) noexcept {
  unsigned bits = UCP_MEM_MAP_PROT_LOCAL_READ | UCP_MEM_MAP_PROT_LOCAL_WRITE;
  if (includes(granted, access::read)) bits |= UCP_MEM_MAP_PROT_REMOTE_READ;
  if (includes(granted, access::write)) bits |= UCP_MEM_MAP_PROT_REMOTE_WRITE;
  return bits;
}

failure refused_by_ucx(const char* what, ucs_status_t status) {
  return {errc::not_supported, std::string(what) + " (UCX: " + words(status) + ")", status};
}

}  // namespace

result<std::unique_ptr<plane_memory>> plane_memory::map(device_plane& plane,
                                                        const cuda_context& context,
                                                        std::span<std::byte> bytes,
                                                        access granted) {
  const current_context current(context);
  if (current.result() != cuda::success) {
    return failure{errc::not_supported,
                   cuda_words(context.driver(), "cuCtxPushCurrent", current.result())};
  }
  if (includes(granted, access::write) && !flush_adapter_writes(context)) {
    return failure{errc::not_supported,
                   "the device does not see what adapters write, and the driver has no "
                   "cuFlushGPUDirectRDMAWrites for it"};
  }
  std::unique_ptr<plane_memory> made(new plane_memory(plane, bytes));
  ucp_mem_map_params_t params = {};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                      UCP_MEM_MAP_PARAM_FIELD_PROT | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
  params.address = bytes.data();
  params.length = bytes.size();
  params.prot = device_protection(granted);
  params.memory_type = UCS_MEMORY_TYPE_CUDA;
  const ucs_status_t status = plane.api().mem_map(plane.handle(), &params, &made->memory_);
  if (status != UCS_OK) {
    made->memory_ = nullptr;
    return refused_by_ucx("UCX can not register it", status);
  }
  if (auto checked = made->check_kind(); !checked) return std::move(checked).why();
  if (auto packed = made->pack_key(); !packed) return std::move(packed).why();
  return made;
}

/// UCX maps what it takes for the host's memory, too, and would have the processor touch it.
result<void> plane_memory::check_kind() const {
  ucp_mem_attr_t told = {};
  told.field_mask = UCP_MEM_ATTR_FIELD_MEM_TYPE;
  const ucs_status_t status = plane_.api().mem_query(memory_, &told);
  if (status != UCS_OK)
    return refused_by_ucx("UCX does not tell what memory it has registered", status);
  if (told.mem_type == UCS_MEMORY_TYPE_CUDA) return {};
  return failure{errc::not_supported,
                 "UCX takes it for memory of another kind (" + std::to_string(told.mem_type) + ")"};
}

result<void> plane_memory::pack_key() {
  void* packed = nullptr;
  std::size_t length = 0;
  ucp_api& api = plane_.api();
  const ucs_status_t status = api.rkey_pack(plane_.handle(), memory_, &packed, &length);
  if (status != UCS_OK) return refused_by_ucx("UCX makes no key to it", status);
  const auto release = [&api](void* buffer) { api.rkey_buffer_release(buffer); };
  const std::unique_ptr<void, decltype(release)> owned(packed, release);
  const auto* const first = static_cast<const std::byte*>(packed);
  if (length > padded_key::longest || plane_.address().size() > longest_plane_address) {
    return failure{errc::not_supported,
                   "UCX's key to it, or its worker's address, is too long for a descriptor"};
  }
  told_.key.assign(first, first + length);
  told_.worker = plane_.address();
  told_.address = reinterpret_cast<std::uintptr_t>(bytes_.data());
  return {};
}

plane_memory::~plane_memory() {
  if (memory_ == nullptr) return;
  plane_.api().mem_unmap(plane_.handle(), memory_);
  end_registration(plane_.api(), plane_.handle(), bytes_);
}

}  // namespace ucx::detail
