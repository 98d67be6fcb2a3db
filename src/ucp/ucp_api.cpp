#include "ucp/ucp_api.hpp"

#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>

#include "base/never_destroyed.hpp"

namespace ucx::detail {
namespace {

/// A yield that no other thread makes use of takes a microsecond.
constexpr std::chrono::microseconds uncontended_yield{10};

class real_api final : public ucp_api {
 public:
  void get_version(unsigned* major, unsigned* minor, unsigned* release) override {
    ucp_get_version(major, minor, release);
  }
  ucs_status_t config_read(const char* prefix, const char* file, ucp_config_t** config) override {
    return ucp_config_read(prefix, file, config);
  }
  void config_release(ucp_config_t* config) override { ucp_config_release(config); }
  ucs_status_t config_modify(ucp_config_t* config, const char* key, const char* value) override {
    return ucp_config_modify(config, key, value);
  }
  void config_print(const ucp_config_t* config, std::FILE* to, const char* title,
                    ucs_config_print_flags_t flags) override {
    ucp_config_print(config, to, title, flags);
  }
  ucs_status_t init(const ucp_params_t* params, const ucp_config_t* config,
                    ucp_context_h* context) override {
    return ucp_init(params, config, context);
  }
  void cleanup(ucp_context_h context) override { ucp_cleanup(context); }
  void context_print_info(ucp_context_h context, std::FILE* to) override {
    ucp_context_print_info(context, to);
  }
  ucs_status_t context_query(ucp_context_h context, ucp_context_attr_t* attributes) override {
    return ucp_context_query(context, attributes);
  }

  ucs_status_t worker_create(ucp_context_h context, const ucp_worker_params_t* params,
                             ucp_worker_h* worker) override {
    return ucp_worker_create(context, params, worker);
  }
  void worker_destroy(ucp_worker_h worker) override { ucp_worker_destroy(worker); }
  ucs_status_t worker_query(ucp_worker_h worker, ucp_worker_attr_t* attributes) override {
    return ucp_worker_query(worker, attributes);
  }
  ucs_status_t worker_get_address(ucp_worker_h worker, ucp_address_t** address,
                                  std::size_t* length) override {
    return ucp_worker_get_address(worker, address, length);
  }
  void worker_release_address(ucp_worker_h worker, ucp_address_t* address) override {
    ucp_worker_release_address(worker, address);
  }
  unsigned worker_progress(ucp_worker_h worker) override { return ucp_worker_progress(worker); }
  ucs_status_t worker_get_efd(ucp_worker_h worker, int* fd) override {
    return ucp_worker_get_efd(worker, fd);
  }
  ucs_status_t worker_arm(ucp_worker_h worker) override { return ucp_worker_arm(worker); }
  ucs_status_t worker_signal(ucp_worker_h worker) override { return ucp_worker_signal(worker); }
  ucs_status_t worker_fence(ucp_worker_h worker) override { return ucp_worker_fence(worker); }

  ucs_status_t listener_create(ucp_worker_h worker, const ucp_listener_params_t* params,
                               ucp_listener_h* listener) override {
    return ucp_listener_create(worker, params, listener);
  }
  ucs_status_t listener_query(ucp_listener_h listener, ucp_listener_attr_t* attributes) override {
    return ucp_listener_query(listener, attributes);
  }
  ucs_status_t listener_reject(ucp_listener_h listener, ucp_conn_request_h request) override {
    return ucp_listener_reject(listener, request);
  }
  void listener_destroy(ucp_listener_h listener) override { ucp_listener_destroy(listener); }
  ucs_status_t conn_request_query(ucp_conn_request_h request,
                                  ucp_conn_request_attr_t* attributes) override {
    return ucp_conn_request_query(request, attributes);
  }
  ucs_status_t ep_create(ucp_worker_h worker, const ucp_ep_params_t* params,
                         ucp_ep_h* endpoint) override {
    return ucp_ep_create(worker, params, endpoint);
  }
  ucs_status_ptr_t ep_close_nbx(ucp_ep_h endpoint, const ucp_request_param_t* params) override {
    return ucp_ep_close_nbx(endpoint, params);
  }
  ucs_status_ptr_t ep_flush_nbx(ucp_ep_h endpoint, const ucp_request_param_t* params) override {
    return ucp_ep_flush_nbx(endpoint, params);
  }
  ucs_status_t ep_query(ucp_ep_h endpoint, ucp_ep_attr_t* attributes) override {
    return ucp_ep_query(endpoint, attributes);
  }
  void ep_print_info(ucp_ep_h endpoint, std::FILE* to) override { ucp_ep_print_info(endpoint, to); }

  ucs_status_t mem_map(ucp_context_h context, const ucp_mem_map_params_t* params,
                       ucp_mem_h* memory) override {
    return ucp_mem_map(context, params, memory);
  }
  ucs_status_t mem_unmap(ucp_context_h context, ucp_mem_h memory) override {
    return ucp_mem_unmap(context, memory);
  }
  ucs_status_t mem_query(ucp_mem_h memory, ucp_mem_attr_t* attributes) override {
    return ucp_mem_query(memory, attributes);
  }
  ucs_status_t rkey_pack(ucp_context_h context, ucp_mem_h memory, void** buffer,
                         std::size_t* size) override {
    return ucp_rkey_pack(context, memory, buffer, size);
  }
  void rkey_buffer_release(void* buffer) override { ucp_rkey_buffer_release(buffer); }
  ucs_status_t ep_rkey_unpack(ucp_ep_h endpoint, const void* buffer, ucp_rkey_h* key) override {
    return ucp_ep_rkey_unpack(endpoint, buffer, key);
  }
  ucs_status_t rkey_ptr(ucp_rkey_h key, std::uint64_t address, void** local) override {
    return ucp_rkey_ptr(key, address, local);
  }
  void rkey_destroy(ucp_rkey_h key) override { ucp_rkey_destroy(key); }

  ucs_status_ptr_t get_nbx(ucp_ep_h endpoint, void* buffer, std::size_t count,
                           std::uint64_t address, ucp_rkey_h key,
                           const ucp_request_param_t* params) override {
    return ucp_get_nbx(endpoint, buffer, count, address, key, params);
  }
  ucs_status_ptr_t put_nbx(ucp_ep_h endpoint, const void* buffer, std::size_t count,
                           std::uint64_t address, ucp_rkey_h key,
                           const ucp_request_param_t* params) override {
    return ucp_put_nbx(endpoint, buffer, count, address, key, params);
  }
  ucs_status_t worker_set_am_recv_handler(ucp_worker_h worker,
                                          const ucp_am_handler_param_t* params) override {
    return ucp_worker_set_am_recv_handler(worker, params);
  }
  ucs_status_ptr_t am_send_nbx(ucp_ep_h endpoint, unsigned id, const void* header,
                               std::size_t header_length, const void* buffer, std::size_t count,
                               const ucp_request_param_t* params) override {
    return ucp_am_send_nbx(endpoint, id, header, header_length, buffer, count, params);
  }
  ucs_status_ptr_t am_recv_data_nbx(ucp_worker_h worker, void* descriptor, void* buffer,
                                    std::size_t count, const ucp_request_param_t* params) override {
    return ucp_am_recv_data_nbx(worker, descriptor, buffer, count, params);
  }
  void am_data_release(ucp_worker_h worker, void* data) override {
    ucp_am_data_release(worker, data);
  }
  void request_cancel(ucp_worker_h worker, void* request) override {
    ucp_request_cancel(worker, request);
  }
  void request_free(void* request) override { ucp_request_free(request); }

  int try_listen(const sockaddr* address, socklen_t size) override {
    const int tried = ::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (tried < 0) return errno;
    const int on = 1;
    ::setsockopt(tried, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const bool listens = ::bind(tried, address, size) == 0 && ::listen(tried, 1) == 0;
    const int failure = listens ? 0 : errno;
    ::close(tried);
    return failure;
  }

  clock::time_point now() override { return clock::now(); }

  // The clock of the kernel's last tick; std::chrono::steady_clock is CLOCK_MONOTONIC on Linux.
  clock::time_point now_or_soon() override {
    timespec tick = {};
    if (::clock_gettime(CLOCK_MONOTONIC_COARSE, &tick) != 0) return now();
    return clock::time_point(std::chrono::seconds(tick.tv_sec) +
                             std::chrono::nanoseconds(tick.tv_nsec)) +
           between_ticks_;
  }

  void forget_registration(const void* address, std::size_t size) noexcept override {
    static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(address) / page * page;
    const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(address) + size;
    const std::size_t length = (end - first + page - 1) / page * page;
    auto* const pages = reinterpret_cast<void*>(first);
    // UCX hears of mremap(2) before the system does, which refuses it without MREMAP_MAYMOVE.
    [[maybe_unused]] const void* const refused =
        ::mremap(pages, length, length, MREMAP_FIXED, pages);
  }

  std::size_t read_process(::pid_t process, std::span<const ::iovec> into,
                           std::span<const memory_range> from) noexcept override {
    std::array<::iovec, 8> remote = {};
    if (from.size() > remote.size()) return 0;
    std::transform(from.begin(), from.end(), remote.begin(), [](const memory_range& each) {
      return ::iovec{reinterpret_cast<void*>(static_cast<std::uintptr_t>(each.address)), each.size};
    });
    const ::ssize_t read =
        ::process_vm_readv(process, into.data(), into.size(), remote.data(), from.size(), 0);
    return read < 0 ? 0 : static_cast<std::size_t>(read);
  }

  void wait_readable(int fd, int wake_fd, std::chrono::nanoseconds timeout) override {
    std::array<pollfd, 2> fds{pollfd{fd, POLLIN, 0}, pollfd{wake_fd, POLLIN, 0}};
    // poll ignores negative descriptors, so one array serves both cases.
    const auto bounded = std::clamp<std::chrono::nanoseconds>(
        timeout, std::chrono::nanoseconds::zero(), std::chrono::hours(1));
    const timespec limit{static_cast<time_t>(bounded.count() / 1'000'000'000),
                         static_cast<long>(bounded.count() % 1'000'000'000)};
    ::ppoll(fds.data(), fds.size(), &limit, nullptr);
  }

  bool relax() override {
    const clock::time_point before = clock::now();
    ::sched_yield();
    return clock::now() - before > uncontended_yield;
  }

 private:
  static std::chrono::nanoseconds tick_length() noexcept {
    timespec length = {};
    ::clock_getres(CLOCK_MONOTONIC_COARSE, &length);
    return std::chrono::seconds(length.tv_sec) + std::chrono::nanoseconds(length.tv_nsec);
  }
  const std::chrono::nanoseconds between_ticks_ = tick_length();
};

}  // namespace

ucp_api& real_ucp() noexcept {
  // Never destroyed: streams opened by static objects may still use it at exit.
  static const never_destroyed<real_api> api;
  return *api;
}

}  // namespace ucx::detail
