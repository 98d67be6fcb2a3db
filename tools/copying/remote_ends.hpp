// A server's ends of a copy.
#pragma once

#include <cstdint>
#include <memory>

#include "copying/copy_ends.hpp"
#include "ucx/url.hpp"

namespace ucx::tool {

std::unique_ptr<copy_source> open_remote_source(const url& from, const copy_terms& terms,
                                                server_clients& clients);

/// A file of a store appears when it is committed; one that may be resumed is written under
/// `partial_name` and renamed. A name of a fixed size, such as memory, is written where it is.
std::unique_ptr<copy_target> open_remote_target(const url& to, std::uint64_t size,
                                                const copy_terms& terms, server_clients& clients);

}  // namespace ucx::tool
