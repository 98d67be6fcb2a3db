// Connecting that ends, whatever UCX does.
#pragma once

#include <functional>

#include "process/client_settings.hpp"
#include "ucx/client.hpp"
#include "ucx/client_options.hpp"
#include "ucx/url.hpp"

namespace ucx::tool {

/// Returns the client of the server of `any` that `connect` makes. Errors: those of `connect`;
/// failure with exit_code::no_connection, where the server has no room for it.
client bounded_connect(const client_settings& settings, const url& any,
                       const client_options& chosen,
                       const std::function<client(const url&, const client_options&)>& connect);

}  // namespace ucx::tool
