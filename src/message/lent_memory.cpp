#include "message/lent_memory.hpp"

#include <utility>

#include "ucp/registration_cache.hpp"
#include "ucp/resource_error.hpp"
#include "worker/context_core.hpp"

namespace ucx::detail {

bool lent_memory::begin(context_core& context, std::span<const std::byte> bytes) noexcept {
  // Connections that are made meanwhile lock memory, too, and hang where they may not.
  if (!context.api().may_lock(bytes.size() + memory_locked_by_worker)) return false;
  ucp_mem_map_params_t params = {};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                      UCP_MEM_MAP_PARAM_FIELD_PROT;
  params.address = const_cast<std::byte*>(bytes.data());  // only read
  params.length = bytes.size();
  params.prot = UCP_MEM_MAP_PROT_LOCAL_READ | UCP_MEM_MAP_PROT_REMOTE_READ;
  if (context.api().mem_map(context.handle(), &params, &memory_) != UCS_OK) {
    memory_ = nullptr;
    return false;
  }
  context_ = &context;
  bytes_ = bytes;
  if (context.api().rkey_pack(context.handle(), memory_, &key_, &key_size_) == UCS_OK) return true;
  key_ = nullptr;
  end();
  return false;
}

void lent_memory::end() noexcept {
  if (!lends()) return;
  ucp_api& api = context_->api();
  if (key_ != nullptr) api.rkey_buffer_release(std::exchange(key_, nullptr));
  api.mem_unmap(context_->handle(), std::exchange(memory_, nullptr));
  end_registration(api, context_->handle(), bytes_);
}

}  // namespace ucx::detail
