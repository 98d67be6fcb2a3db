// Calls of functions with the types of C++: docs/reference/calls.md.
#pragma once

#include "ucx/call_channel.hpp"
#include "ucx/call_containers.hpp"
#include "ucx/call_form.hpp"
#include "ucx/call_function.hpp"
#include "ucx/call_listing.hpp"
#include "ucx/call_request.hpp"
#include "ucx/call_server.hpp"
#include "ucx/call_stub.hpp"
#include "ucx/call_table.hpp"
#include "ucx/call_task.hpp"
#include "ucx/call_types.hpp"
#include "ucx/hybrid_clock.hpp"
#include "ucx/late_answer.hpp"
#include "ucx/remote_procedure.hpp"
#include "ucx/window.hpp"
