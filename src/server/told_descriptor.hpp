// The part of a descriptor that a server tells a client.
#pragma once

#include "connection/channel.hpp"
#include "ucx/access.hpp"
#include "ucx/remote_descriptor.hpp"

namespace ucx::detail {

/// Returns the descriptor with the rights that were asked for. A peer that does not share the host
/// is told nothing that is of use on the host only: no process, file, record or handle. Without RMA
/// it is told no key and no address, either. A key of UCX's goes to no peer of another context.
remote_descriptor told_descriptor(remote_descriptor whole, access wanted, const peer_reach& to);

}  // namespace ucx::detail
