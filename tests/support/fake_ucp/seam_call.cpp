#include "support/fake_ucp/seam_call.hpp"

#include <array>

namespace ucx::test {
namespace {

struct description {
  std::string_view name;
  bool can_fail;
};

constexpr std::array<description, call_count> descriptions{{
    {"get_version", false},
    {"config_read", true},
    {"config_release", false},
    {"config_modify", true},
    {"config_print", false},
    {"init", true},
    {"cleanup", false},
    {"context_print_info", false},
    {"context_query", true},
    {"worker_create", true},
    {"worker_destroy", false},
    {"worker_query", true},
    {"worker_get_address", true},
    {"worker_release_address", false},
    {"worker_progress", false},
    {"worker_get_efd", true},
    {"worker_arm", true},
    {"worker_signal", true},
    {"worker_fence", true},
    {"listener_create", true},
    {"listener_query", true},
    {"listener_reject", true},
    {"listener_destroy", false},
    {"conn_request_query", true},
    {"ep_create", true},
    {"ep_close", true},
    {"ep_flush", true},
    {"ep_query", true},
    {"ep_print_info", false},
    {"mem_map", true},
    {"mem_unmap", true},
    {"mem_query", true},
    {"rkey_pack", true},
    {"rkey_buffer_release", false},
    {"ep_rkey_unpack", true},
    {"rkey_ptr", true},
    {"rkey_destroy", false},
    {"get", true},
    {"put", true},
    {"worker_set_am_recv_handler", true},
    {"am_send", true},
    {"am_recv_data", true},
    {"am_data_release", false},
    {"request_cancel", false},
    {"request_free", false},
    {"read_process", true},
    {"forget_registration", false},
    {"now", false},
    {"wait_readable", false},
    {"relax", false},
}};

}  // namespace

std::string_view to_string(call which) noexcept {
  return descriptions[static_cast<std::size_t>(which)].name;
}

bool can_fail(call which) noexcept {
  return descriptions[static_cast<std::size_t>(which)].can_fail;
}

}  // namespace ucx::test
