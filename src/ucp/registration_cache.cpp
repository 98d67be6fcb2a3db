#include "ucp/registration_cache.hpp"

#include <sys/mman.h>
#include <unistd.h>

namespace ucx::detail {
namespace {

/// Returns a page that nothing else is on, of the process for good; nothing where there is no
/// memory.
std::span<std::byte> own_page() noexcept {
  static const std::span<std::byte> page = [] {
    const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    void* const made =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return made == MAP_FAILED ? std::span<std::byte>()
                              : std::span(static_cast<std::byte*>(made), size);
  }();
  return page;
}

}  // namespace

void end_registration(ucp_api& api, ucp_context_h context,
                      std::span<const std::byte> bytes) noexcept {
  if (bytes.empty()) return;
  api.forget_registration(bytes.data(), bytes.size());
  // The next registration of what the cache does not have empties the list of what was forgotten.
  const std::span<std::byte> page = own_page();
  if (page.empty()) return;
  api.forget_registration(page.data(), page.size());
  ucp_mem_map_params_t params = {};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
  params.address = page.data();
  params.length = page.size();
  ucp_mem_h own = nullptr;
  if (api.mem_map(context, &params, &own) == UCS_OK) api.mem_unmap(context, own);
}

}  // namespace ucx::detail
