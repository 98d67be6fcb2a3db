// UCX's listing of a configuration, read back.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ucp/ucp_api.hpp"

namespace ucx::detail {

/// One line of UCX's listing.
struct listed_key {
  std::string key;     ///< Without "UCX_".
  std::string value;   ///< In force.
  std::string syntax;  ///< UCX's own line on what the key takes; empty if it was not asked for.
};

/// Returns what UCX lists: its own keys, and those of transports that were set on `config`.
/// Cost: with `documented`, a millisecond.
std::vector<listed_key> list_configuration(ucp_api& api, const ucp_config_t* config,
                                           bool documented);

}  // namespace ucx::detail
