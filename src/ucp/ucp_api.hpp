// The seam: every call of UCX's, of the clock and of the system's poll goes through this interface.
// So a test can make each of them fail, be late or complete in another order.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>
#include <ucp/api/ucp.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/owned_descriptor.hpp"
#include "base/time_source.hpp"
#include "os/lockable_memory.hpp"
#include "os/rdma_port.hpp"
#include "ucp/withdrawn_send.hpp"
#include "ucx/peer_identity.hpp"

namespace ucx::detail {

/// Memory of another process.
struct memory_range {
  std::uint64_t address = 0;
  std::size_t size = 0;
};

/// One virtual function for each `ucp_*` function in use, named and typed as UCX's without the
/// prefix; their meaning is UCX's. Objects keep a reference to the api of their context: it
/// outlives all of them. Thread-safety is UCX's own.
class ucp_api : public time_source {
 public:
  // Context and configuration.
  virtual void get_version(unsigned* major, unsigned* minor, unsigned* release) = 0;
  virtual ucs_status_t config_read(const char* prefix, const char* file, ucp_config_t** config) = 0;
  virtual void config_release(ucp_config_t* config) = 0;
  virtual ucs_status_t config_modify(ucp_config_t* config, const char* key, const char* value) = 0;
  virtual void config_print(const ucp_config_t* config, std::FILE* to, const char* title,
                            ucs_config_print_flags_t flags) = 0;
  virtual ucs_status_t init(const ucp_params_t* params, const ucp_config_t* config,
                            ucp_context_h* context) = 0;
  virtual void cleanup(ucp_context_h context) = 0;
  virtual void context_print_info(ucp_context_h context, std::FILE* to) = 0;
  virtual ucs_status_t context_query(ucp_context_h context, ucp_context_attr_t* attributes) = 0;

  // Workers.
  virtual ucs_status_t worker_create(ucp_context_h context, const ucp_worker_params_t* params,
                                     ucp_worker_h* worker) = 0;
  virtual void worker_destroy(ucp_worker_h worker) = 0;
  virtual ucs_status_t worker_query(ucp_worker_h worker, ucp_worker_attr_t* attributes) = 0;
  virtual ucs_status_t worker_get_address(ucp_worker_h worker, ucp_address_t** address,
                                          std::size_t* length) = 0;
  virtual void worker_release_address(ucp_worker_h worker, ucp_address_t* address) = 0;
  virtual unsigned worker_progress(ucp_worker_h worker) = 0;
  virtual ucs_status_t worker_get_efd(ucp_worker_h worker, int* fd) = 0;
  virtual ucs_status_t worker_arm(ucp_worker_h worker) = 0;
  virtual ucs_status_t worker_signal(ucp_worker_h worker) = 0;
  virtual ucs_status_t worker_fence(ucp_worker_h worker) = 0;

  // Connections.
  virtual ucs_status_t listener_create(ucp_worker_h worker, const ucp_listener_params_t* params,
                                       ucp_listener_h* listener) = 0;
  virtual ucs_status_t listener_query(ucp_listener_h listener, ucp_listener_attr_t* attributes) = 0;
  virtual ucs_status_t listener_reject(ucp_listener_h listener, ucp_conn_request_h request) = 0;
  virtual void listener_destroy(ucp_listener_h listener) = 0;
  virtual ucs_status_t conn_request_query(ucp_conn_request_h request,
                                          ucp_conn_request_attr_t* attributes) = 0;
  virtual ucs_status_t ep_create(ucp_worker_h worker, const ucp_ep_params_t* params,
                                 ucp_ep_h* endpoint) = 0;
  virtual ucs_status_ptr_t ep_close_nbx(ucp_ep_h endpoint, const ucp_request_param_t* params) = 0;
  virtual ucs_status_ptr_t ep_flush_nbx(ucp_ep_h endpoint, const ucp_request_param_t* params) = 0;
  virtual ucs_status_t ep_query(ucp_ep_h endpoint, ucp_ep_attr_t* attributes) = 0;
  virtual void ep_print_info(ucp_ep_h endpoint, std::FILE* to) = 0;

  // Memory.
  virtual ucs_status_t mem_map(ucp_context_h context, const ucp_mem_map_params_t* params,
                               ucp_mem_h* memory) = 0;
  virtual ucs_status_t mem_unmap(ucp_context_h context, ucp_mem_h memory) = 0;
  virtual ucs_status_t mem_query(ucp_mem_h memory, ucp_mem_attr_t* attributes) = 0;
  virtual ucs_status_t rkey_pack(ucp_context_h context, ucp_mem_h memory, void** buffer,
                                 std::size_t* size) = 0;
  virtual void rkey_buffer_release(void* buffer) = 0;
  virtual ucs_status_t ep_rkey_unpack(ucp_ep_h endpoint, const void* buffer, ucp_rkey_h* key) = 0;
  virtual ucs_status_t rkey_ptr(ucp_rkey_h key, std::uint64_t address, void** local) = 0;
  virtual void rkey_destroy(ucp_rkey_h key) = 0;

  // Transfers.
  virtual ucs_status_ptr_t get_nbx(ucp_ep_h endpoint, void* buffer, std::size_t count,
                                   std::uint64_t address, ucp_rkey_h key,
                                   const ucp_request_param_t* params) = 0;
  virtual ucs_status_ptr_t put_nbx(ucp_ep_h endpoint, const void* buffer, std::size_t count,
                                   std::uint64_t address, ucp_rkey_h key,
                                   const ucp_request_param_t* params) = 0;
  virtual ucs_status_t worker_set_am_recv_handler(ucp_worker_h worker,
                                                  const ucp_am_handler_param_t* params) = 0;
  virtual ucs_status_ptr_t am_send_nbx(ucp_ep_h endpoint, unsigned id, const void* header,
                                       std::size_t header_length, const void* buffer,
                                       std::size_t count, const ucp_request_param_t* params) = 0;
  virtual ucs_status_ptr_t am_recv_data_nbx(ucp_worker_h worker, void* descriptor, void* buffer,
                                            std::size_t count,
                                            const ucp_request_param_t* params) = 0;
  virtual void am_data_release(ucp_worker_h worker, void* data) = 0;
  virtual void request_cancel(ucp_worker_h worker, void* request) = 0;
  virtual void request_free(void* request) = 0;
  /// The bytes of a send that has not ended are the caller's again: the rest of a message that has
  /// begun is copied. One that has not begun may be dropped where `may_drop`, and ends with
  /// UCS_ERR_CANCELED. It is told of as it would have been. UCX can not, nor the library without
  /// memory.
  virtual withdrawn_send withdraw_send(void* /*request*/, bool /*may_drop*/) noexcept {
    return withdrawn_send::kept;
  }

  // Descriptors of files beside messages, which UCX does not carry.
  /// Returns whether the connection carries them.
  virtual bool ep_carries_files(ucp_ep_h) const noexcept { return false; }
  /// From here on `ep_passed_file` returns those that come; before, the system drops them.
  virtual void ep_take_files(ucp_ep_h) noexcept {}
  /// Passes `file` with the next message, which has no payload.
  virtual void ep_pass_file(ucp_ep_h, owned_descriptor) noexcept {}
  /// Takes the file that came with the message that the handler is told of; nothing where none
  /// came. It is sealed memory: nothing that is done with it waits for anybody.
  virtual owned_descriptor ep_passed_file(ucp_ep_h) noexcept { return {}; }

  /// Binds a socket and listens on this address for a moment. Returns 0, or what `errno` was.
  virtual int try_listen(const sockaddr* address, socklen_t size) = 0;

  /// Copies what lies at `from` in another process into `into`, in the order of both, by the
  /// operating system. Returns how much that was: nothing, where that is not allowed.
  virtual std::size_t read_process(::pid_t process, std::span<const ::iovec> into,
                                   std::span<const memory_range> from) noexcept = 0;

  /// Tells UCX's cache of registrations that these pages are no longer what they were, as if they
  /// had been unmapped. UCX lets go of them at its next registration.
  virtual void forget_registration(const void* address, std::size_t size) noexcept = 0;

  /// Returns who has connected, where that is known of an accepted endpoint; else null.
  virtual std::shared_ptr<const peer_identity> identity_of(ucp_ep_h) const noexcept {
    return nullptr;
  }

  /// Returns whether UCX is called; else sockets of this library play it (`socket_api`).
  virtual bool is_ucx() const noexcept { return true; }

  /// Returns whether processes can map each other's memory: not where they are simulated.
  virtual bool may_share_memory() const noexcept { return true; }

  /// Returns the ports of the machine's RDMA devices, whether or not UCX has a transport for them.
  virtual std::vector<rdma_port> rdma_ports() const { return detail::rdma_ports(); }

  /// Returns whether the system lists one of them.
  virtual bool is_rdma_port_there(std::string_view name) const {
    return detail::is_rdma_port_there(name);
  }

  /// Returns whether the process may lock `bytes` more, as registrations with these devices do.
  virtual bool may_lock(std::size_t bytes) const noexcept { return detail::may_lock(bytes); }

  /// Waits until `fd` or `wake_fd` (-1: none) polls readable, or `timeout` has passed.
  virtual void wait_readable(int fd, int wake_fd, std::chrono::nanoseconds timeout) = 0;
};

/// Returns the api that calls UCX.
ucp_api& real_ucp() noexcept;

}  // namespace ucx::detail
