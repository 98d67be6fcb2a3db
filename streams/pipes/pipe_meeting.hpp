// How the ends of a pipe find each other by URL: at the broker of a server.
#pragma once

#include "pipes/pipe_introduction.hpp"
#include "pipes/pipe_path.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/url.hpp"

namespace ucx::detail {

/// Asks the server of `where` for the other ends of that name, as many as the options want, and
/// connects to them. Fails where they do not come in time.
path_or_error meet(const url& where, pipe_role role, const pipe_options& options);

}  // namespace ucx::detail
