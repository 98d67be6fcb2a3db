#include "connection/data_ports.hpp"

#include <algorithm>
#include <system_error>

#include "connection/transport_ports.hpp"
#include "os/device_name.hpp"
#include "ucx/version.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

bool uses_tcp(const worker_core& some) noexcept {
  const std::vector<std::string>& resources = some.context().resources();
  return std::any_of(resources.begin(), resources.end(),
                     [](const std::string& each) { return transport_of(each) == "tcp"; });
}

data_ports data_ports_of(worker_core& some) {
  std::error_code untold;
  const worker_address address = some.address(untold);
  data_ports made{transport_ports(address.native()), {}};
  if (!made.found.empty() || !uses_tcp(some)) return made;
  version_number version;
  some.api().get_version(&version.major, &version.minor, &version.patch);
  const std::string ucx = "UCX " + to_string(version);
  made.why_none = untold ? ucx + " does not tell them: " + untold.message()
                         : ucx + " tells them in another way than 1.13 to 1.22 do";
  return made;
}

}  // namespace ucx::detail
