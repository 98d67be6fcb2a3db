// Memory and remote keys of the simulated UCX.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "support/fake_ucp/fake_ucp_address.hpp"
#include "support/fake_ucp/fake_ucp_entry.hpp"

namespace ucx::test {
namespace {

constexpr std::size_t page = 4096;

// UCX finds out what it is not told. What it is told wrong it believes.
ucs_memory_type_t type_of(sim::fabric& network, const sim::context_object& context,
                          const ucp_mem_map_params_t& params) {
  if ((params.field_mask & UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE) != 0) return params.memory_type;
  const bool device = context.knows_devices && network.devices->has(params.address);
  return device ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_HOST;
}

}  // namespace

void fake_ucp::install(std::shared_ptr<fake_devices> devices) {
  const sim::lock_type guard(network_.mutex);
  network_.devices = std::move(devices);
}

ucs_status_t fake_ucp::mem_map(ucp_context_h context, const ucp_mem_map_params_t* params,
                               ucp_mem_h* memory) {
  api_entry in(*this, call::mem_map);
  auto* const parent = in.find(network_.contexts, context);
  if (parent == nullptr) return UCS_ERR_INVALID_PARAM;
  if (in.refused()) return in.verdict().status;
  if ((params->field_mask & UCP_MEM_MAP_PARAM_FIELD_LENGTH) == 0) return UCS_ERR_INVALID_PARAM;
  const bool has_address = (params->field_mask & UCP_MEM_MAP_PARAM_FIELD_ADDRESS) != 0;
  const bool allocate = (params->field_mask & UCP_MEM_MAP_PARAM_FIELD_FLAGS) != 0 &&
                        (params->flags & UCP_MEM_MAP_ALLOCATE) != 0;
  if (!allocate && !has_address) return UCS_ERR_INVALID_PARAM;
  if (!allocate && params->address == nullptr && params->length > 0) return UCS_ERR_INVALID_PARAM;
  const ucs_memory_type_t type =
      allocate ? UCS_MEMORY_TYPE_HOST : type_of(network_, *parent, *params);
  const bool is_device = type != UCS_MEMORY_TYPE_HOST;
  if (is_device && (!parent->knows_devices || type != UCS_MEMORY_TYPE_CUDA)) {
    return UCS_ERR_INVALID_PARAM;
  }
  const bool at_device =
      network_.devices != nullptr && !allocate && network_.devices->has(params->address);
  if (at_device != is_device) in.violate("names another type of memory than it is");
  auto made = std::make_unique<sim::memory_object>();
  made->type = type;
  made->in_reach = !is_device || network_.devices->is_in_reach(params->address, params->length);
  made->context = parent;
  made->id = network_.next_id++;
  made->length = params->length;
  if (allocate && params->length > 0) {
    if (params->length > network_.link.allocation_limit) return UCS_ERR_NO_MEMORY;
    made->length = (params->length + page - 1) / page * page;
    made->allocated = std::aligned_alloc(page, made->length);
    if (made->allocated == nullptr) return UCS_ERR_NO_MEMORY;
    std::memset(made->allocated, 0, made->length);
    made->base = static_cast<std::byte*>(made->allocated);
  } else if (!allocate) {
    made->base = static_cast<std::byte*>(params->address);
  }
  ++parent->memories;
  auto* const object = network_.memories.add(std::move(made));
  network_.memory_by_id.emplace(object->id, object);
  *memory = reinterpret_cast<ucp_mem_h>(object);
  return UCS_OK;
}

ucs_status_t fake_ucp::mem_unmap(ucp_context_h context, ucp_mem_h memory) {
  api_entry in(*this, call::mem_unmap);
  auto* const object = in.find(network_.memories, memory);
  if (in.find(network_.contexts, context) == nullptr || object == nullptr) {
    return UCS_ERR_INVALID_PARAM;
  }
  if (in.refused()) return in.verdict().status;
  --object->context->memories;
  network_.memory_by_id.erase(object->id);
  network_.memories.remove(memory);
  std::free(object->allocated);
  object->allocated = nullptr;
  return UCS_OK;
}

ucs_status_t fake_ucp::mem_query(ucp_mem_h memory, ucp_mem_attr_t* attributes) {
  api_entry in(*this, call::mem_query);
  const auto* const object = in.find(network_.memories, memory);
  if (object == nullptr) return UCS_ERR_INVALID_PARAM;
  if (in.refused()) return in.verdict().status;
  if ((attributes->field_mask & UCP_MEM_ATTR_FIELD_ADDRESS) != 0)
    attributes->address = object->base;
  if ((attributes->field_mask & UCP_MEM_ATTR_FIELD_LENGTH) != 0)
    attributes->length = object->length;
  if ((attributes->field_mask & UCP_MEM_ATTR_FIELD_MEM_TYPE) != 0) {
    attributes->mem_type = network_.link.mistakes_devices ? UCS_MEMORY_TYPE_HOST : object->type;
  }
  return UCS_OK;
}

ucs_status_t fake_ucp::rkey_pack(ucp_context_h context, ucp_mem_h memory, void** buffer,
                                 std::size_t* size) {
  api_entry in(*this, call::rkey_pack);
  const auto* const object = in.find(network_.memories, memory);
  if (in.find(network_.contexts, context) == nullptr || object == nullptr) {
    return UCS_ERR_INVALID_PARAM;
  }
  if (in.refused()) return in.verdict().status;
  *buffer = make_rkey({object->id, object->type}, *size);
  network_.rkey_buffers.insert(*buffer);
  return UCS_OK;
}

void fake_ucp::rkey_buffer_release(void* buffer) {
  api_entry in(*this, call::rkey_buffer_release);
  if (network_.rkey_buffers.erase(buffer) == 0) return in.violate("of something else");
  free_rkey(buffer);
}

ucs_status_t fake_ucp::ep_rkey_unpack(ucp_ep_h endpoint, const void* buffer, ucp_rkey_h* key) {
  api_entry in(*this, call::ep_rkey_unpack, worker_of(endpoint));
  auto* const object = in.find(network_.endpoints, endpoint);
  if (object == nullptr) return UCS_ERR_INVALID_PARAM;
  if (in.refused()) return in.verdict().status;
  const auto content = read_rkey(buffer);
  if (!content) {
    in.violate("with bytes that are not an intact key: UCX crashes on such");
    return UCS_ERR_INVALID_PARAM;
  }
  auto made = std::make_unique<sim::rkey_object>();
  made->endpoint = object;
  made->memory_id = content->memory_id;
  made->type = content->type;
  ++object->rkeys;
  *key = reinterpret_cast<ucp_rkey_h>(network_.rkeys.add(std::move(made)));
  return UCS_OK;
}

ucs_status_t fake_ucp::rkey_ptr(ucp_rkey_h key, std::uint64_t address, void** local) {
  api_entry in(*this, call::rkey_ptr);
  const auto* const object = in.find(network_.rkeys, key);
  if (object == nullptr) return UCS_ERR_INVALID_PARAM;
  if (in.refused()) return in.verdict().status;
  const auto* const memory = network_.memory(object->memory_id);
  if (!network_.link.shared_memory || memory == nullptr || memory->allocated == nullptr) {
    return UCS_ERR_UNREACHABLE;
  }
  // The simulated processes share an address space.
  const auto first = reinterpret_cast<std::uintptr_t>(memory->base);
  if (address < first || address - first >= memory->length) return UCS_ERR_INVALID_ADDR;
  *local = reinterpret_cast<void*>(address);
  return UCS_OK;
}

void fake_ucp::forget_registration(const void*, std::size_t) noexcept {
  const api_entry in(*this, call::forget_registration);
}

void fake_ucp::rkey_destroy(ucp_rkey_h key) {
  api_entry in(*this, call::rkey_destroy);
  auto* const object = in.find(network_.rkeys, key);
  if (object == nullptr) return;
  if (object->endpoint->rkeys > 0) --object->endpoint->rkeys;
  network_.rkeys.remove(key);
}

}  // namespace ucx::test
