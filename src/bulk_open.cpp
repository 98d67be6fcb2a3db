#include "ucx/bulk_open.hpp"

#include "detail/client_core.hpp"
#include "detail/core_access.hpp"
#include "ucx/error.hpp"

namespace ucx {

std::vector<opened_name> open_each(client& from, std::span<const std::string> names, access wanted,
                                   const io_options& options) {
  const auto& core = detail::core_access::core(from);
  if (!core) throw error(errc::closed, "opening many names with a client that was moved from");
  return core->open_each(names, wanted, options);
}

std::vector<fetched_name> fetch_each(client& from, std::span<const std::string> names,
                                     std::size_t most, const io_options& options) {
  const auto& core = detail::core_access::core(from);
  if (!core) throw error(errc::closed, "fetching many names with a client that was moved from");
  return core->fetch_each(names, most, options);
}

}  // namespace ucx
