// How operations end whose caller waits no longer, and whose memory is the caller's.
#pragma once

namespace ucx::detail {

class operation;
class operation_group;
class worker_core;

/// Gives the operation up, and returns when UCX can no longer touch what it borrowed of the caller.
/// That takes the worker's `heartbeat_timeout` at most, after which the connection is dropped.
/// Inside a handler the connection is dropped after a moment, if it detects that its peer is lost.
void cancel_and_wait(operation& operation) noexcept;
/// Does so for every member of a group of `worker`'s.
void cancel_and_wait(operation_group& group, worker_core& worker) noexcept;

}  // namespace ucx::detail
