// How an agent and its clients find each other, at the agent's server.
#pragma once

#include <stop_token>

#include "process/client_settings.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/url.hpp"

namespace ucx::tool {

// A client writes a name that no other one has to a pipe that agents read: two clients never meet
// there. Under that name it then meets the agent, both ways.

/// Calls the agent of a server; returns the pipe to it. Errors: failure; with exit_code::failure,
/// where the server takes no pipes, hence has no agent; with exit_code::timed_out, where no agent
/// comes.
pipe_streambuf call_agent(const url& server, const client_settings& settings,
                          const std::stop_token& stop);

/// Waits for a client's call, for a long time; returns the pipe that it comes by. Errors: those of
/// pipe_streambuf.
pipe_streambuf await_call(const url& own_server, const std::stop_token& stop);

/// Reads who calls, and returns the pipe to them. Errors: failure; those of pipe_streambuf.
pipe_streambuf answer_call(pipe_streambuf call, const url& own_server, const std::stop_token& stop);

}  // namespace ucx::tool
