#include "carrier/carrier_api.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "base/never_destroyed.hpp"
#include "carrier/carrier_endpoint.hpp"
#include "carrier/carrier_listener.hpp"
#include "carrier/carrier_worker.hpp"
#include "carrier/socket_status.hpp"
#include "carrier/tls.hpp"
#include "carrier/unix_trust.hpp"

namespace ucx::detail {
namespace {

struct carrier_context {
  explicit carrier_context(const socket_configuration& chosen)
      : tls(chosen.tls), clear_unix(chosen.clear_unix), trust(chosen.trusted, chosen.log) {}

  std::string name;
  std::shared_ptr<tls_context> tls;
  bool clear_unix;
  unix_trust trust;
};

/// A listener, with the worker that drives it.
struct driven_listener {
  carrier_worker& worker;
  std::unique_ptr<carrier_listener> listener;
};

carrier_context& of(ucp_context_h handle) { return *reinterpret_cast<carrier_context*>(handle); }
carrier_worker& of(ucp_worker_h handle) { return *reinterpret_cast<carrier_worker*>(handle); }
carrier_endpoint& of(ucp_ep_h handle) { return *reinterpret_cast<carrier_endpoint*>(handle); }
driven_listener& of(ucp_listener_h handle) { return *reinterpret_cast<driven_listener*>(handle); }

/// Does what may lack memory.
template <class Do>
ucs_status_t within_memory(Do work) noexcept {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return UCS_ERR_NO_MEMORY;
  }
}

template <class Do>
ucs_status_ptr_t pointer_within_memory(Do work) noexcept {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return as_pointer(UCS_ERR_NO_MEMORY);
  }
}

void copy_name(std::span<char> into, const std::string& name) noexcept {
  std::snprintf(into.data(), into.size(), "%s", name.c_str());
}

class carrier_api final : public ucp_api {
 public:
  // Of the process, not of UCX.
  clock::time_point now() override { return real_ucp().now(); }
  clock::time_point now_or_soon() override { return real_ucp().now_or_soon(); }
  bool relax() override { return real_ucp().relax(); }
  int try_listen(const sockaddr* address, socklen_t size) override {
    return real_ucp().try_listen(address, size);
  }
  std::size_t read_process(::pid_t process, std::span<const ::iovec> into,
                           std::span<const memory_range> from) noexcept override {
    return real_ucp().read_process(process, into, from);
  }
  void wait_readable(int fd, int wake_fd, std::chrono::nanoseconds timeout) override {
    real_ucp().wait_readable(fd, wake_fd, timeout);
  }
  void get_version(unsigned* major, unsigned* minor, unsigned* release) override {
    real_ucp().get_version(major, minor, release);
  }
  void forget_registration(const void*, std::size_t) noexcept override {}
  bool is_ucx() const noexcept override { return false; }
  std::vector<rdma_port> rdma_ports() const override { return {}; }

  // It has no configuration.
  ucs_status_t config_read(const char*, const char*, ucp_config_t**) override {
    return unsupported;
  }
  void config_release(ucp_config_t*) override {}
  ucs_status_t config_modify(ucp_config_t*, const char*, const char*) override {
    return unsupported;
  }
  void config_print(const ucp_config_t*, std::FILE*, const char*,
                    ucs_config_print_flags_t) override {}

  ucs_status_t init(const ucp_params_t* params, const ucp_config_t* config,
                    ucp_context_h* context) override {
    return within_memory([&] {
      const auto* const chosen = reinterpret_cast<const socket_configuration*>(config);
      auto made = std::make_unique<carrier_context>(chosen ? *chosen : socket_configuration());
      if ((params->field_mask & UCP_PARAM_FIELD_NAME) != 0) made->name = params->name;
      *context = reinterpret_cast<ucp_context_h>(made.release());
      return UCS_OK;
    });
  }
  void cleanup(ucp_context_h context) override {
    const std::unique_ptr<carrier_context> owned(&of(context));
  }
  void context_print_info(ucp_context_h context, std::FILE* to) override {
    std::fprintf(to, "# resource 0  :  md 0  dev 0  flags -- %s\n",
                 of(context).tls ? tls_resource : socket_resource);
  }
  ucs_status_t context_query(ucp_context_h context, ucp_context_attr_t* attributes) override {
    attributes->thread_mode = UCS_THREAD_MODE_MULTI;
    attributes->memory_types = std::uint64_t{1} << UCS_MEMORY_TYPE_HOST;
    attributes->request_size = sizeof(carrier_request);
    if ((attributes->field_mask & UCP_ATTR_FIELD_NAME) != 0)
      copy_name(attributes->name, of(context).name);
    return UCS_OK;
  }

  ucs_status_t worker_create(ucp_context_h context, const ucp_worker_params_t* params,
                             ucp_worker_h* worker) override {
    return within_memory([&] {
      const bool named = (params->field_mask & UCP_WORKER_PARAM_FIELD_NAME) != 0;
      auto made = std::make_unique<carrier_worker>(named ? params->name : of(context).name,
                                                   of(context).tls);
      made->trust = &of(context).trust;
      made->clear_unix = of(context).clear_unix;
      const ucs_status_t opened = made->open();
      if (opened == UCS_OK) *worker = reinterpret_cast<ucp_worker_h>(made.release());
      return opened;
    });
  }
  void worker_destroy(ucp_worker_h worker) override {
    const std::unique_ptr<carrier_worker> owned(&of(worker));
  }
  ucs_status_t worker_query(ucp_worker_h worker, ucp_worker_attr_t* attributes) override {
    attributes->thread_mode = UCS_THREAD_MODE_SERIALIZED;
    attributes->max_am_header = segment_head::longest_header;
    if ((attributes->field_mask & UCP_WORKER_ATTR_FIELD_NAME) != 0)
      copy_name(attributes->name, of(worker).name());
    return UCS_OK;
  }
  ucs_status_t worker_get_address(ucp_worker_h, ucp_address_t**, std::size_t*) override {
    return unsupported;
  }
  void worker_release_address(ucp_worker_h, ucp_address_t*) override {}
  unsigned worker_progress(ucp_worker_h worker) override { return of(worker).progress(); }
  ucs_status_t worker_get_efd(ucp_worker_h worker, int* fd) override {
    *fd = of(worker).event_fd();
    return UCS_OK;
  }
  ucs_status_t worker_arm(ucp_worker_h worker) override { return of(worker).arm(); }
  ucs_status_t worker_signal(ucp_worker_h worker) override {
    of(worker).signal();
    return UCS_OK;
  }
  ucs_status_t worker_fence(ucp_worker_h) override { return UCS_OK; }

  ucs_status_t listener_create(ucp_worker_h worker, const ucp_listener_params_t* params,
                               ucp_listener_h* listener) override {
    return within_memory([&] {
      auto made = std::make_unique<driven_listener>(driven_listener{of(worker), nullptr});
      const ucs_status_t listens = carrier_listener::make(of(worker), *params, made->listener);
      if (listens == UCS_OK) *listener = reinterpret_cast<ucp_listener_h>(made.release());
      return listens;
    });
  }
  ucs_status_t listener_query(ucp_listener_h listener, ucp_listener_attr_t* attributes) override {
    return of(listener).listener->address(attributes->sockaddr);
  }
  ucs_status_t listener_reject(ucp_listener_h, ucp_conn_request_h request) override {
    const std::unique_ptr<carrier_caller> owned = take(request);
    return UCS_OK;
  }
  void listener_destroy(ucp_listener_h listener) override {
    const std::unique_ptr<driven_listener> owned(&of(listener));
    owned->listener->stop();
    owned->worker.bury(std::move(owned->listener));
  }
  ucs_status_t conn_request_query(ucp_conn_request_h request,
                                  ucp_conn_request_attr_t* attributes) override {
    attributes->client_address = reinterpret_cast<carrier_caller*>(request)->address;
    return UCS_OK;
  }
  ucs_status_t ep_create(ucp_worker_h worker, const ucp_ep_params_t* params,
                         ucp_ep_h* endpoint) override {
    return within_memory([&] {
      carrier_endpoint* made = nullptr;
      ucs_status_t begun = UCS_ERR_UNSUPPORTED;  // by the address of a worker
      if ((params->field_mask & UCP_EP_PARAM_FIELD_CONN_REQUEST) != 0) {
        begun = carrier_endpoint::accept(of(worker), *take(params->conn_request), *params, made);
      } else if ((params->field_mask & UCP_EP_PARAM_FIELD_SOCK_ADDR) != 0) {
        begun = carrier_endpoint::connect(of(worker), *params, made);
      }
      *endpoint = reinterpret_cast<ucp_ep_h>(made);
      return begun;
    });
  }
  ucs_status_ptr_t ep_close_nbx(ucp_ep_h endpoint, const ucp_request_param_t* params) override {
    return of(endpoint).close(*params);
  }
  ucs_status_ptr_t ep_flush_nbx(ucp_ep_h endpoint, const ucp_request_param_t* params) override {
    return pointer_within_memory([&] { return of(endpoint).flush(*params); });
  }
  ucs_status_t ep_query(ucp_ep_h endpoint, ucp_ep_attr_t* attributes) override {
    const std::uint64_t asked = attributes->field_mask;
    ucs_status_t told = UCS_OK;
    if ((asked & UCP_EP_ATTR_FIELD_LOCAL_SOCKADDR) != 0)
      told = of(endpoint).local(attributes->local_sockaddr);
    if (told == UCS_OK && (asked & UCP_EP_ATTR_FIELD_REMOTE_SOCKADDR) != 0)
      told = of(endpoint).peer(attributes->remote_sockaddr);
    return told;
  }
  bool ep_carries_files(ucp_ep_h endpoint) const noexcept override {
    return of(endpoint).carries_files();
  }
  void ep_take_files(ucp_ep_h endpoint) noexcept override { of(endpoint).take_files(); }
  void ep_pass_file(ucp_ep_h endpoint, owned_descriptor file) noexcept override {
    of(endpoint).pass_file(std::move(file));
  }
  owned_descriptor ep_passed_file(ucp_ep_h endpoint) noexcept override {
    return of(endpoint).passed_file();
  }
  void ep_print_info(ucp_ep_h endpoint, std::FILE* to) override {
    sockaddr_storage local = {};
    const bool is_unix = of(endpoint).local(local) == UCS_OK && local.ss_family == AF_UNIX;
    const char* const resource = of(endpoint).is_by_tls() ? tls_resource
                                 : is_unix                ? unix_resource
                                                          : socket_resource;
    std::fprintf(to, "# lane[0]:  0:%s.0 md[0] am\n", resource);
  }

  std::shared_ptr<const peer_identity> identity_of(ucp_ep_h endpoint) const noexcept override {
    return of(endpoint).identity();
  }

  // No memory is reached.
  ucs_status_t mem_map(ucp_context_h, const ucp_mem_map_params_t*, ucp_mem_h*) override {
    return unsupported;
  }
  ucs_status_t mem_unmap(ucp_context_h, ucp_mem_h) override { return unsupported; }
  ucs_status_t mem_query(ucp_mem_h, ucp_mem_attr_t*) override { return unsupported; }
  ucs_status_t rkey_pack(ucp_context_h, ucp_mem_h, void**, std::size_t*) override {
    return unsupported;
  }
  void rkey_buffer_release(void*) override {}
  ucs_status_t ep_rkey_unpack(ucp_ep_h, const void*, ucp_rkey_h*) override { return unsupported; }
  ucs_status_t rkey_ptr(ucp_rkey_h, std::uint64_t, void**) override { return unsupported; }
  void rkey_destroy(ucp_rkey_h) override {}
  ucs_status_ptr_t get_nbx(ucp_ep_h, void*, std::size_t, std::uint64_t, ucp_rkey_h,
                           const ucp_request_param_t*) override {
    return as_pointer(unsupported);
  }
  ucs_status_ptr_t put_nbx(ucp_ep_h, const void*, std::size_t, std::uint64_t, ucp_rkey_h,
                           const ucp_request_param_t*) override {
    return as_pointer(unsupported);
  }

  ucs_status_t worker_set_am_recv_handler(ucp_worker_h worker,
                                          const ucp_am_handler_param_t* params) override {
    of(worker).set_handler(*params);
    return UCS_OK;
  }
  ucs_status_ptr_t am_send_nbx(ucp_ep_h endpoint, unsigned id, const void* header,
                               std::size_t header_length, const void* buffer, std::size_t count,
                               const ucp_request_param_t* params) override {
    return of(endpoint).send(id, {static_cast<const std::byte*>(header), header_length},
                             {static_cast<const std::byte*>(buffer), count}, *params);
  }
  /// Within the handler that is told of a long message only. The handler is called again when all
  /// has come. The request is not freed by the caller.
  ucs_status_ptr_t am_recv_data_nbx(ucp_worker_h, void* descriptor, void* buffer, std::size_t count,
                                    const ucp_request_param_t*) override {
    auto& from = *static_cast<carrier_endpoint*>(descriptor);
    const bool taken = from.give_place({static_cast<std::byte*>(buffer), count});
    return taken ? descriptor : as_pointer(UCS_ERR_INVALID_PARAM);
  }
  void am_data_release(ucp_worker_h worker, void* data) override {
    of(worker).buffers().give_back(data);
  }
  /// Takes back a place. Nothing else: sends are withdrawn, or end with the endpoint.
  void request_cancel(ucp_worker_h worker, void* request) override {
    of(worker).withdraw_place(request);
  }
  withdrawn_send withdraw_send(void* request, bool may_drop) noexcept override {
    auto& sent = *static_cast<carrier_request*>(request);
    return sent.worker->withdraw(sent, may_drop);
  }
  void request_free(void* request) override {
    auto& freed = *static_cast<carrier_request*>(request);
    freed.worker->free(freed);
  }

 private:
  static constexpr ucs_status_t unsupported = UCS_ERR_UNSUPPORTED;

  static std::unique_ptr<carrier_caller> take(ucp_conn_request_h request) noexcept {
    return std::unique_ptr<carrier_caller>(reinterpret_cast<carrier_caller*>(request));
  }
};

}  // namespace

ucp_api& socket_api() noexcept {
  // Never destroyed: streams opened by static objects may still use it at exit.
  static const never_destroyed<carrier_api> api;
  return *api;
}

}  // namespace ucx::detail
