#include "ucp/forked_ucp.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "base/never_destroyed.hpp"

namespace ucx::detail {
namespace {

constexpr ucs_status_t refusal = status_inherited;

/// Waits are short: nothing that is waited for there will come.
constexpr std::chrono::milliseconds longest_wait{1};

class forked_api final : public ucp_api {
 public:
  void get_version(unsigned* major, unsigned* minor, unsigned* release) override {
    real_ucp().get_version(major, minor, release);
  }
  ucs_status_t config_read(const char*, const char*, ucp_config_t**) override { return refusal; }
  void config_release(ucp_config_t*) override {}
  ucs_status_t config_modify(ucp_config_t*, const char*, const char*) override { return refusal; }
  void config_print(const ucp_config_t*, std::FILE*, const char*,
                    ucs_config_print_flags_t) override {}
  ucs_status_t init(const ucp_params_t*, const ucp_config_t*, ucp_context_h*) override {
    return refusal;
  }
  void cleanup(ucp_context_h) override {}
  void context_print_info(ucp_context_h, std::FILE*) override {}
  ucs_status_t context_query(ucp_context_h, ucp_context_attr_t*) override { return refusal; }
  ucs_status_t worker_create(ucp_context_h, const ucp_worker_params_t*, ucp_worker_h*) override {
    return refusal;
  }
  void worker_destroy(ucp_worker_h) override {}
  ucs_status_t worker_query(ucp_worker_h, ucp_worker_attr_t*) override { return refusal; }
  ucs_status_t worker_get_address(ucp_worker_h, ucp_address_t**, std::size_t*) override {
    return refusal;
  }
  void worker_release_address(ucp_worker_h, ucp_address_t*) override {}
  unsigned worker_progress(ucp_worker_h) override { return 0; }
  ucs_status_t worker_get_efd(ucp_worker_h, int*) override { return refusal; }
  ucs_status_t worker_arm(ucp_worker_h) override { return refusal; }
  ucs_status_t worker_signal(ucp_worker_h) override { return refusal; }
  ucs_status_t worker_fence(ucp_worker_h) override { return refusal; }
  ucs_status_t listener_create(ucp_worker_h, const ucp_listener_params_t*,
                               ucp_listener_h*) override {
    return refusal;
  }
  ucs_status_t listener_query(ucp_listener_h, ucp_listener_attr_t*) override { return refusal; }
  ucs_status_t listener_reject(ucp_listener_h, ucp_conn_request_h) override { return refusal; }
  void listener_destroy(ucp_listener_h) override {}
  ucs_status_t conn_request_query(ucp_conn_request_h, ucp_conn_request_attr_t*) override {
    return refusal;
  }
  ucs_status_t ep_create(ucp_worker_h, const ucp_ep_params_t*, ucp_ep_h*) override {
    return refusal;
  }
  ucs_status_ptr_t ep_close_nbx(ucp_ep_h, const ucp_request_param_t*) override { return refused(); }
  ucs_status_ptr_t ep_flush_nbx(ucp_ep_h, const ucp_request_param_t*) override { return refused(); }
  ucs_status_t ep_query(ucp_ep_h, ucp_ep_attr_t*) override { return refusal; }
  void ep_print_info(ucp_ep_h, std::FILE*) override {}
  ucs_status_t mem_map(ucp_context_h, const ucp_mem_map_params_t*, ucp_mem_h*) override {
    return refusal;
  }
  ucs_status_t mem_unmap(ucp_context_h, ucp_mem_h) override { return refusal; }
  ucs_status_t mem_query(ucp_mem_h, ucp_mem_attr_t*) override { return refusal; }
  ucs_status_t rkey_pack(ucp_context_h, ucp_mem_h, void**, std::size_t*) override {
    return refusal;
  }
  void rkey_buffer_release(void*) override {}
  ucs_status_t ep_rkey_unpack(ucp_ep_h, const void*, ucp_rkey_h*) override { return refusal; }
  ucs_status_t rkey_ptr(ucp_rkey_h, std::uint64_t, void**) override { return refusal; }
  void rkey_destroy(ucp_rkey_h) override {}
  ucs_status_ptr_t get_nbx(ucp_ep_h, void*, std::size_t, std::uint64_t, ucp_rkey_h,
                           const ucp_request_param_t*) override {
    return refused();
  }
  ucs_status_ptr_t put_nbx(ucp_ep_h, const void*, std::size_t, std::uint64_t, ucp_rkey_h,
                           const ucp_request_param_t*) override {
    return refused();
  }
  ucs_status_t worker_set_am_recv_handler(ucp_worker_h, const ucp_am_handler_param_t*) override {
    return refusal;
  }
  ucs_status_ptr_t am_send_nbx(ucp_ep_h, unsigned, const void*, std::size_t, const void*,
                               std::size_t, const ucp_request_param_t*) override {
    return refused();
  }
  ucs_status_ptr_t am_recv_data_nbx(ucp_worker_h, void*, void*, std::size_t,
                                    const ucp_request_param_t*) override {
    return refused();
  }
  void am_data_release(ucp_worker_h, void*) override {}
  void request_cancel(ucp_worker_h, void*) override {}
  void request_free(void*) override {}

  int try_listen(const sockaddr*, socklen_t) override { return ENOTSUP; }
  void forget_registration(const void*, std::size_t) noexcept override {}
  std::size_t read_process(::pid_t, std::span<const ::iovec>,
                           std::span<const memory_range>) noexcept override {
    return 0;
  }
  bool may_share_memory() const noexcept override { return false; }
  clock::time_point now() override { return clock::now(); }
  void wait_readable(int, int, std::chrono::nanoseconds timeout) override {
    std::this_thread::sleep_for(std::clamp<std::chrono::nanoseconds>(timeout, {}, longest_wait));
  }
  bool relax() override {
    std::this_thread::yield();
    return false;
  }

 private:
  static ucs_status_ptr_t refused() noexcept { return UCS_STATUS_PTR(refusal); }
};

}  // namespace

ucp_api& forked_ucp() noexcept {
  static const never_destroyed<forked_api> api;  // as the real one
  return *api;
}

}  // namespace ucx::detail
