#include "connection/misplaced_option.hpp"

namespace ucx::detail {

const char* misplaced_option(const endpoint_options& options, connected_by way) noexcept {
  if (way == connected_by::worker_address) {
    if (options.local.empty()) return nullptr;
    return "endpoint_options::local: connections by worker address come from no socket address";
  }
  if (options.error_handling == error_handling_mode::none) {
    return "endpoint_options::error_handling: UCX watches each connection over sockets; none is "
           "for "
           "those by worker address";
  }
  if (options.watched_by != nullptr) {
    return "endpoint_options::watched_by: UCX watches each connection over sockets itself";
  }
  if (way == connected_by::request && !options.local.empty()) {
    return "endpoint_options::local: an accepted connection has its listener's address";
  }
  if (way == connected_by::request && options.plain_peer) {
    return "endpoint_options::plain_peer: a listener accepts peers that say hello";
  }
  if (way == connected_by::name && options.wait == connect_wait::none) {
    return "endpoint_options::wait: to connect by name waits for the name; connection_manager does "
           "not, nor does a socket address";
  }
  return nullptr;
}

}  // namespace ucx::detail
