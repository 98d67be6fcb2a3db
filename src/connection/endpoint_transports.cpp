// What UCX says about the lanes of a connection.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "connection/endpoint_core.hpp"
#include "ucp/printed_text.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// UCX prints a line a lane: "lane[0]:  2:tcp/lo.0 md[1] -> md[1]/tcp/sysdev[255] am ...".
std::vector<std::string> parse_transports(std::string_view printed) {
  std::vector<std::string> found;
  for (std::size_t at = printed.find("lane["); at != std::string_view::npos;
       at = printed.find("lane[", at + 1)) {
    const std::size_t number = printed.find_first_not_of(' ', printed.find(':', at) + 1);
    const std::size_t begin = printed.find(':', number);
    if (begin == std::string_view::npos) break;
    std::string_view name = printed.substr(begin + 1);
    name = name.substr(0, name.find_first_of(" \n"));
    // What follows the last dot is UCX's number of the path within the device.
    std::string transport(name.substr(0, name.rfind('.')));
    if (transport.find('/') == std::string::npos) continue;  // the connection manager's own lane
    if (std::find(found.begin(), found.end(), transport) == found.end()) {
      found.push_back(std::move(transport));
    }
  }
  return found;
}

}  // namespace

std::vector<std::string> endpoint_core::transports() {
  if (handle_ == nullptr) return {};
  return parse_transports(
      printed_text([this](std::FILE* to) { worker_.api().ep_print_info(handle_, to); }));
}

bool endpoint_core::shares_memory() noexcept {
  if (detects_failure_) return false;  // UCX takes no shared memory then
  try {
    const std::vector<std::string> found = transports();
    return std::any_of(found.begin(), found.end(), [](std::string_view each) {
      return each.starts_with("posix/") || each.starts_with("sysv/");
    });
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace ucx::detail
