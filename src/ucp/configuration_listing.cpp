#include "ucp/configuration_listing.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "ucp/printed_text.hpp"

namespace ucx::detail {
namespace {

constexpr std::string_view syntax_mark = "syntax:";

/// Returns what UCX prints; empty if there is no memory for it.
std::string printed_config(ucp_api& api, const ucp_config_t* config, unsigned flags) {
  return printed_text([&](std::FILE* to) {
    api.config_print(config, to, "ucxio", static_cast<ucs_config_print_flags_t>(flags));
  });
}

}  // namespace

std::vector<listed_key> list_configuration(ucp_api& api, const ucp_config_t* config,
                                           bool documented) {
  unsigned flags = UCS_CONFIG_PRINT_CONFIG | UCS_CONFIG_PRINT_HIDDEN;
  if (documented) flags |= UCS_CONFIG_PRINT_DOC;
  const std::string text = printed_config(api, config, flags);

  std::vector<listed_key> keys;
  std::string_view syntax;
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.starts_with('#')) {
      const std::size_t mark = line.find(syntax_mark);
      if (mark == std::string_view::npos) continue;
      syntax = line.substr(mark + syntax_mark.size());
      syntax.remove_prefix(std::min(syntax.find_first_not_of(' '), syntax.size()));
      continue;
    }
    const std::size_t equals = line.find('=');
    // Keys of transports stand without the prefix. A key "(deprecated)" has no value.
    if (equals == std::string_view::npos || line.substr(0, equals).find(' ') != line.npos) continue;
    if (line.starts_with("UCX_")) line.remove_prefix(4);
    const std::string_view key = line.substr(0, line.find('='));
    keys.push_back(
        {std::string(key), std::string(line.substr(key.size() + 1)), std::string(syntax)});
    syntax = {};
  }
  return keys;
}

}  // namespace ucx::detail
