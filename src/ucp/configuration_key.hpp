// The keys of UCX's configuration that UCX does not list: those of transports and of the process.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ucp/configuration_value.hpp"
#include "ucx/version.hpp"

namespace ucx::detail {

/// A key as one version of UCX takes it.
struct configuration_key {
  enum class standing {
    settable,
    unknown,
    environment_only,  ///< UCX reads it when the process starts, and never again.
    later,             ///< Newer versions of UCX have it.
  };
  standing where = standing::unknown;
  value_rule rule = value_rule(value_rule::form::anything);
  /// The names that `ucp_config_modify` takes. There are several where the key was given without
  /// its transport, and this version of UCX wants one for each.
  std::vector<std::string> spellings = {};
};

/// Looks `key` up for UCX `version`, in the spelling of any version. Environment variables have the
/// transport in front ("TCP_TX_SEG_SIZE"). UCX before 1.17 wants no transport ("TX_SEG_SIZE"): the
/// value is then set for every transport that has such a key.
configuration_key find_configuration_key(std::string_view key, version_number version);

/// Returns every key that `find_configuration_key` knows, with its transport in front.
std::vector<std::string> configuration_key_names();

/// Returns whether UCX `version` has transports of this name, or a name for several.
bool is_transport_name(std::string_view name, version_number version) noexcept;

/// Returns the transport names of UCX `version`, for an error text.
std::string transport_names(version_number version);

}  // namespace ucx::detail
