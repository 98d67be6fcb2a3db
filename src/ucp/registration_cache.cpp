#include "ucp/registration_cache.hpp"

#include <array>

namespace ucx::detail {
namespace {

alignas(4096) std::array<std::byte, 4096> own_page;

}  // namespace

void end_registration(ucp_api& api, ucp_context_h context,
                      std::span<const std::byte> bytes) noexcept {
  if (bytes.empty()) return;
  api.forget_registration(bytes.data(), bytes.size());
  // The next registration of what the cache does not have empties the list of what was forgotten.
  api.forget_registration(own_page.data(), own_page.size());
  ucp_mem_map_params_t params = {};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
  params.address = own_page.data();
  params.length = own_page.size();
  ucp_mem_h own = nullptr;
  if (api.mem_map(context, &params, &own) == UCS_OK) api.mem_unmap(context, own);
}

}  // namespace ucx::detail
