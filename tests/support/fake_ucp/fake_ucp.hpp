// The seam to UCX of one simulated process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string_view>
#include <vector>

#include "support/fake_ucp/fake_fabric.hpp"
#include "ucp/ucp_api.hpp"

namespace ucx::test {

/// Answers every call of the seam as UCX does, on a simulated network. Handles are checked: a stale
/// one, or a call that UCX forbids, is a violation of the network instead of a crash.
class fake_ucp final : public detail::ucp_api {
 public:
  fake_ucp(sim::fabric& network, sim::process_state& process)
      : network_(network), process_(process) {}

  // Context and configuration.
  void get_version(unsigned* major, unsigned* minor, unsigned* release) override;
  ucs_status_t config_read(const char* prefix, const char* file, ucp_config_t** config) override;
  void config_release(ucp_config_t* config) override;
  ucs_status_t config_modify(ucp_config_t* config, const char* key, const char* value) override;
  void config_print(const ucp_config_t* config, std::FILE* to, const char* title,
                    ucs_config_print_flags_t flags) override;
  ucs_status_t init(const ucp_params_t* params, const ucp_config_t* config,
                    ucp_context_h* context) override;
  void cleanup(ucp_context_h context) override;
  void context_print_info(ucp_context_h context, std::FILE* to) override;
  ucs_status_t context_query(ucp_context_h context, ucp_context_attr_t* attributes) override;

  // Workers.
  ucs_status_t worker_create(ucp_context_h context, const ucp_worker_params_t* params,
                             ucp_worker_h* worker) override;
  void worker_destroy(ucp_worker_h worker) override;
  ucs_status_t worker_query(ucp_worker_h worker, ucp_worker_attr_t* attributes) override;
  ucs_status_t worker_get_address(ucp_worker_h worker, ucp_address_t** address,
                                  std::size_t* length) override;
  void worker_release_address(ucp_worker_h worker, ucp_address_t* address) override;
  unsigned worker_progress(ucp_worker_h worker) override;
  ucs_status_t worker_get_efd(ucp_worker_h worker, int* fd) override;
  ucs_status_t worker_arm(ucp_worker_h worker) override;
  ucs_status_t worker_signal(ucp_worker_h worker) override;
  ucs_status_t worker_fence(ucp_worker_h worker) override;

  // Connections.
  ucs_status_t listener_create(ucp_worker_h worker, const ucp_listener_params_t* params,
                               ucp_listener_h* listener) override;
  ucs_status_t listener_query(ucp_listener_h listener, ucp_listener_attr_t* attributes) override;
  ucs_status_t listener_reject(ucp_listener_h listener, ucp_conn_request_h request) override;
  void listener_destroy(ucp_listener_h listener) override;
  ucs_status_t conn_request_query(ucp_conn_request_h request,
                                  ucp_conn_request_attr_t* attributes) override;
  ucs_status_t ep_create(ucp_worker_h worker, const ucp_ep_params_t* params,
                         ucp_ep_h* endpoint) override;
  ucs_status_ptr_t ep_close_nbx(ucp_ep_h endpoint, const ucp_request_param_t* params) override;
  ucs_status_ptr_t ep_flush_nbx(ucp_ep_h endpoint, const ucp_request_param_t* params) override;
  ucs_status_t ep_query(ucp_ep_h endpoint, ucp_ep_attr_t* attributes) override;
  void ep_print_info(ucp_ep_h endpoint, std::FILE* to) override;

  // Memory.
  ucs_status_t mem_map(ucp_context_h context, const ucp_mem_map_params_t* params,
                       ucp_mem_h* memory) override;
  ucs_status_t mem_unmap(ucp_context_h context, ucp_mem_h memory) override;
  ucs_status_t mem_query(ucp_mem_h memory, ucp_mem_attr_t* attributes) override;
  ucs_status_t rkey_pack(ucp_context_h context, ucp_mem_h memory, void** buffer,
                         std::size_t* size) override;
  void rkey_buffer_release(void* buffer) override;
  ucs_status_t ep_rkey_unpack(ucp_ep_h endpoint, const void* buffer, ucp_rkey_h* key) override;
  ucs_status_t rkey_ptr(ucp_rkey_h key, std::uint64_t address, void** local) override;
  void rkey_destroy(ucp_rkey_h key) override;

  // Transfers.
  ucs_status_ptr_t get_nbx(ucp_ep_h endpoint, void* buffer, std::size_t count,
                           std::uint64_t address, ucp_rkey_h key,
                           const ucp_request_param_t* params) override;
  ucs_status_ptr_t put_nbx(ucp_ep_h endpoint, const void* buffer, std::size_t count,
                           std::uint64_t address, ucp_rkey_h key,
                           const ucp_request_param_t* params) override;
  ucs_status_t worker_set_am_recv_handler(ucp_worker_h worker,
                                          const ucp_am_handler_param_t* params) override;
  ucs_status_ptr_t am_send_nbx(ucp_ep_h endpoint, unsigned id, const void* header,
                               std::size_t header_length, const void* buffer, std::size_t count,
                               const ucp_request_param_t* params) override;
  ucs_status_ptr_t am_recv_data_nbx(ucp_worker_h worker, void* descriptor, void* buffer,
                                    std::size_t count, const ucp_request_param_t* params) override;
  void am_data_release(ucp_worker_h worker, void* data) override;
  void request_cancel(ucp_worker_h worker, void* request) override;
  void request_free(void* request) override;

  /// Ports of the loopback are simulated: nobody else's are in the way.
  int try_listen(const sockaddr* address, socklen_t size) override;

  /// All simulated processes are this one; the system copies, so that no address does harm.
  std::size_t read_process(::pid_t process, std::span<const ::iovec> into,
                           std::span<const detail::memory_range> from) noexcept override;

  void forget_registration(const void* address, std::size_t size) noexcept override;

  /// All simulated processes are this one; off until a test asks for it, because it bypasses what
  /// is simulated.
  bool may_share_memory() const noexcept override { return shares_memory_; }
  void share_memory() noexcept { shares_memory_ = true; }
  void install(std::shared_ptr<fake_devices> devices);

  std::vector<detail::rdma_port> rdma_ports() const override;
  bool is_rdma_port_there(std::string_view name) const override;
  bool may_lock(std::size_t bytes) const noexcept override;

  // Time, and waiting for descriptors.
  detail::clock::time_point now() override;
  detail::clock::time_point now_or_soon() override { return now() - lag_; }
  void lag_by(std::chrono::nanoseconds lag) noexcept { lag_ = lag; }
  void wait_readable(int fd, int wake_fd, std::chrono::nanoseconds timeout) override;
  bool relax() override;

 private:
  friend class api_entry;

  sim::fabric& network_;
  sim::process_state& process_;
  bool shares_memory_ = false;
  std::chrono::nanoseconds lag_{};
};

}  // namespace ucx::test
