// Work that is done before UCX is initialised, which is when the program is loaded.
#pragma once

namespace ucx::tool {

/// Gives SIGHUP the course back that it had when the program was started: ignored, as by `nohup`,
/// or the usual one. UCX takes it for its own debugging, whatever it was before; where the user
/// asked for that (`UCX_DEBUG_SIGNO`), it stays UCX's. Where another loader than glibc's starts the
/// program it gets the usual one.
void restore_hangup() noexcept;

}  // namespace ucx::tool
