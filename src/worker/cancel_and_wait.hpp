// How operations end that nobody will wait for, and whose memory is the caller's.
#pragma once

namespace ucx::detail {

class operation;
class operation_group;
class worker_core;

/// Gives the operation up, and returns when UCX can no longer touch what it borrowed: bounded by
/// the worker's `heartbeat_timeout`, after which the connection is dropped; at once inside a
/// handler.
void cancel_and_wait(operation& operation) noexcept;
/// The same for every member of a group of `worker`'s.
void cancel_and_wait(operation_group& group, worker_core& worker) noexcept;

}  // namespace ucx::detail
