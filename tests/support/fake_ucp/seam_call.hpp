// The functions of the seam by name, so that a test can plan a fault for each and count it.
#pragma once

#include <cstddef>
#include <string_view>

namespace ucx::test {

enum class call : unsigned char {
  get_version,
  config_read,
  config_release,
  config_modify,
  config_print,
  init,
  cleanup,
  context_print_info,
  context_query,
  worker_create,
  worker_destroy,
  worker_query,
  worker_get_address,
  worker_release_address,
  worker_progress,
  worker_get_efd,
  worker_arm,
  worker_signal,
  worker_fence,
  listener_create,
  listener_query,
  listener_reject,
  listener_destroy,
  conn_request_query,
  ep_create,
  ep_close,
  ep_flush,
  ep_query,
  ep_print_info,
  mem_map,
  mem_unmap,
  mem_query,
  rkey_pack,
  rkey_buffer_release,
  ep_rkey_unpack,
  rkey_ptr,
  rkey_destroy,
  get,
  put,
  worker_set_am_recv_handler,
  am_send,
  am_recv_data,
  am_data_release,
  request_cancel,
  request_free,
  read_process,
  forget_registration,
  now,
  wait_readable,
  relax,
};

inline constexpr std::size_t call_count = static_cast<std::size_t>(call::relax) + 1;

/// Returns the name as it stands in `call`.
std::string_view to_string(call which) noexcept;

/// Returns whether the function reports a status, so that a failure of it can be planned.
bool can_fail(call which) noexcept;

}  // namespace ucx::test
