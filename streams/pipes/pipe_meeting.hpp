// How the ends of a pipe find each other by URL: at the broker of a server.
#pragma once

#include <memory>
#include <string>
#include <system_error>

#include "pipes/pipe_introduction.hpp"
#include "pipes/pipe_path.hpp"
#include "ucx/pipe_options.hpp"
#include "ucx/url.hpp"

namespace ucx::detail {

/// Asks the server of `where` for the other ends of that name, as many as the options want, and
/// connects to them. Returns nothing, and why, where they do not come in time.
std::unique_ptr<pipe_path> meet(const url& where, pipe_role role, const pipe_options& options,
                                std::string& what, std::error_code& ec);

}  // namespace ucx::detail
