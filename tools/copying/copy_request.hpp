// A copy's order on its way to the agent that carries it out.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "copying/copy_order.hpp"
#include "copying/fetch_rules.hpp"
#include "copying/server_clients.hpp"
#include "process/client_settings.hpp"

namespace ucx::tool {

/// The copy that an agent is asked for, and how patient it is to be.
struct copy_request {
  copy_order order;
  client_settings settings;
  server_tickets tickets = {};  ///< For the sources' servers, as the client tells them.
};

/// Returns the question. `places` are the order's, as the user wrote them: the last is where it
/// goes. All the others are URLs of servers that have hosts.
nlohmann::json copy_question(const std::vector<std::string>& places, const copy_order& order,
                             const client_settings& settings);

/// Reads one, to be carried out at `own_server`, whatever name the client has for that.
/// Errors: bad_message; bad_url; failure with exit_code::usage, where something else than a URL of
/// a host is meant, and with exit_code::permission, where it is not to be fetched from.
copy_request read_copy_question(const nlohmann::json& question, const url& own_server,
                                const fetch_rules& rules);

}  // namespace ucx::tool
