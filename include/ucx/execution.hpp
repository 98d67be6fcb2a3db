// Senders of the operations, for std::execution of C++26 or NVIDIA's stdexec.
//
// `async_x(object, ...)` returns a sender of the operation that `object.start_x(...)` begins. A
// thread has to drive the worker: `ucx::sync_wait(worker, sender)` does, and the execution
// library's own `sync_wait` does not. docs/reference/execution.md is the contract.
//
// The library needs none of this. The header is for programs that have one of the two, or names of
// their own (`ucx/execution_names.hpp`).
#pragma once

#include "ucx/execution_messages.hpp"
#include "ucx/execution_names.hpp"
#include "ucx/execution_regions.hpp"
#include "ucx/execution_scheduler.hpp"
#include "ucx/execution_senders.hpp"
#include "ucx/execution_state.hpp"
#include "ucx/execution_wait.hpp"
