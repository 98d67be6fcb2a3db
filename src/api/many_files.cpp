#include "ucx/many_files.hpp"

#include "client/client_core.hpp"
#include "ucx/error.hpp"
#include "worker/core_access.hpp"

// Each holds the client by itself: a handler may destroy it meanwhile.
namespace ucx {

std::vector<open_result> open_many(client& from, std::span<const std::string> names, access wanted,
                                   const io_options& options) {
  const auto core = detail::core_access::core(from);
  if (!core) throw error(errc::closed, "opening many names with a client that was moved from");
  return core->regions().open_many(names, wanted, options);
}

std::vector<read_result> read_many(client& from, std::span<const std::string> names,
                                   std::size_t max_size, const io_options& options) {
  const auto core = detail::core_access::core(from);
  if (!core) throw error(errc::closed, "fetching many names with a client that was moved from");
  return core->fetches().read_many(names, max_size, options);
}

std::vector<std::error_code> write_many(client& to, std::span<const short_file> files, creation how,
                                        const io_options& options) {
  const auto core = detail::core_access::core(to);
  if (!core) throw error(errc::closed, "writing many files with a client that was moved from");
  if (how != creation::replace && how != creation::exclusive) {
    throw error(errc::invalid_argument,
                "writing many files: they replace what is there, or are "
                "new, and are not written in place");
  }
  return core->puts().write_many(files, how, options);
}

}  // namespace ucx
