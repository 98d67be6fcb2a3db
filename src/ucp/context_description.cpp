#include "ucp/context_description.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "ucp/printed_text.hpp"

namespace ucx::detail {

std::string description_of(ucp_api& api, ucp_context_h context) {
  return printed_text([&](std::FILE* to) { api.context_print_info(context, to); });
}

/// UCX prints a line a resource: "# resource 0  :  md 0  dev 0  flags -- tcp/lo".
std::vector<std::string> resources_of(ucp_api& api, ucp_context_h context) {
  std::vector<std::string> found;
  const std::string text = description_of(api, context);
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.find("resource ") == std::string_view::npos) continue;
    const std::size_t last = line.find_last_of(' ');
    if (last == std::string_view::npos) continue;
    std::string resource(line.substr(last + 1));
    if (resource.find('/') != std::string::npos) found.push_back(std::move(resource));
  }
  return found;
}

}  // namespace ucx::detail
