// The functions that a server's program lets its clients call.
#pragma once

#include <string_view>
#include <vector>

#include "ucx/call_listing.hpp"
#include "ucx/client.hpp"
#include "ucx/url.hpp"

namespace ucx::tool {

enum class call_list_form { usual, full, names, json };

/// Prints the functions, or that one alone which the URL names. Errors: those of
/// `call_channel::signatures()`; failure with exit_code::not_found.
void list_calls(client& server, const url& at, call_list_form form);

/// Returns the functions of a server. Errors: as above.
std::vector<call_description> functions_of(client& server, const url& at);
/// Returns the one of this name. Errors: failure with exit_code::not_found.
const call_description& function_named(const std::vector<call_description>& all,
                                       std::string_view name, const url& at);

}  // namespace ucx::tool
