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
  const result<worker_address> address = some.address();
  data_ports made{transport_ports(address ? address->native() : std::span<const std::byte>()), {}};
  if (!made.found.empty() || !uses_tcp(some)) return made;
  version_number version;
  some.api().get_version(&version.major, &version.minor, &version.patch);
  const std::string ucx = "UCX " + to_string(version);
  made.why_none = address ? ucx + " tells them in another way than 1.13 to 1.22 do"
                          : ucx + " does not tell them: " + address.why().code.message();
  return made;
}

}  // namespace ucx::detail
