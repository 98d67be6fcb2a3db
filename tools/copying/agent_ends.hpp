// A server's ends of a copy whose bytes come and go compressed: its agent reads and writes them.
#pragma once

#include <cstdint>
#include <memory>

#include "copying/copy_ends.hpp"
#include "ucx/url.hpp"

namespace ucx::tool {

// The agent does what `remote_ends.hpp` does; `hosted_ends` is its part of it.

/// Bytes come as `terms.source_codec` says. Errors: those of agent_link, too.
std::unique_ptr<copy_source> open_agent_source(const url& from, const copy_terms& terms,
                                               server_clients& clients);

/// Bytes go as `terms.target_codec` says.
std::unique_ptr<copy_target> open_agent_target(const url& to, std::uint64_t size,
                                               const copy_terms& terms, server_clients& clients);

}  // namespace ucx::tool
