#include "connection/listening_place.hpp"

#include <system_error>

#include "ucp/resource_error.hpp"
#include "ucp/status.hpp"
#include "ucx/error.hpp"
#include "worker/context_core.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

result<listening_place> listening_place::claim(const worker_core& worker,
                                               const socket_address& wanted) {
  std::error_code ec;
  if (!wanted.is_unix()) {
    if ((ec = listen_error(worker.api(), wanted))) return failure{ec};
    return listening_place{wanted};
  }
  if (worker.context().is_of_ucx()) {
    return failure{errc::not_supported,
                   "UCX has no Unix sockets: the context has to name the transport \"socket\""};
  }
  auto file = socket_file::claim(wanted.host());
  if (!file) return file.why();
  const socket_address chosen("unix:" + (*file)->path(), ec);
  if (ec) return failure{ec, "the path is too long"};
  return listening_place{chosen, *std::move(file)};
}

result<socket_address> listening_place::bound(ucp_api& api, ucp_listener_h listener) const {
  if (file) {
    if (const auto kept = file->bound(); !kept) return kept.why();
  }
  ucp_listener_attr_t attributes = {};
  attributes.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
  const ucs_status_t status = api.listener_query(listener, &attributes);
  if (status != UCS_OK) return failure{make_error(status), {}, status};
  std::error_code ec;
  const socket_address made = socket_address::from_native(
      reinterpret_cast<const ::sockaddr*>(&attributes.sockaddr), sizeof attributes.sockaddr, ec);
  if (ec) return failure{ec};
  return made;
}

}  // namespace ucx::detail
