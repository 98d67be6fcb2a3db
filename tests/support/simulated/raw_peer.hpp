// A simulated process that is driven by raw calls of the seam: for the tests of the fake itself.
#pragma once

#include <netinet/in.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/fake_ucp/fake_network.hpp"
#include "ucp/ucp_api.hpp"

namespace ucx::test {

/// What became of one operation.
struct outcome {
  std::optional<ucs_status_t> status;  ///< Nothing while it is in flight.
  std::size_t length = 0;
  void* request = nullptr;
  bool at_once = false;  ///< It ended inside the call, without a callback.
  bool done() const { return status.has_value(); }
};

/// A context, a worker, and what the process received. It pumps itself while others wait.
class raw_peer {
 public:
  raw_peer(fake_network& network, std::string name,
           std::uint64_t features = UCP_FEATURE_AM | UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP,
           ucs_thread_mode_t threads = UCS_THREAD_MODE_SERIALIZED,
           const std::vector<std::pair<std::string, std::string>>& settings = {});
  ~raw_peer();
  raw_peer(const raw_peer&) = delete;
  raw_peer& operator=(const raw_peer&) = delete;

  std::vector<std::byte> address();
  ucp_ep_h connect(const std::vector<std::byte>& to,
                   ucp_err_handling_mode_t mode = UCP_ERR_HANDLING_MODE_PEER);
  ucp_ep_h connect(std::uint16_t port, const char* host = "127.0.0.1");
  ucp_ep_h accept(ucp_conn_request_h request);
  std::uint16_t listen(std::uint16_t port = 0);
  /// Closes by force, whatever is outstanding.
  void close(ucp_ep_h endpoint);

  outcome& send(ucp_ep_h endpoint, const std::string& header, const std::string& bytes,
                std::uint32_t flags = 0);
  outcome& get(ucp_ep_h endpoint, void* into, std::size_t size, const void* from, ucp_rkey_h key);
  outcome& put(ucp_ep_h endpoint, const void* from, std::size_t size, void* into, ucp_rkey_h key);
  outcome& flush(ucp_ep_h endpoint);
  outcome& start_close(ucp_ep_h endpoint, std::uint32_t flags = 0);
  outcome& receive(void* descriptor, void* into, std::size_t size);

  ucp_mem_h map(void* bytes, std::size_t size);
  ucp_rkey_h unpack(ucp_ep_h endpoint, raw_peer& owner, ucp_mem_h memory);

  unsigned progress() { return api.worker_progress(worker); }
  /// Waits as blocking calls do, and returns whether it was `done` in time.
  bool wait(const std::function<bool()>& done,
            std::chrono::nanoseconds limit = std::chrono::seconds(10));
  bool wait(const outcome& of) {
    return wait([&] { return of.done(); });
  }

  struct message {
    std::string header;
    std::string bytes;
    ucp_ep_h reply_to = nullptr;
    bool rndv = false;
    void* data = nullptr;  // where it was offered, or kept
  };

  fake_process& process;
  detail::ucp_api& api;
  ucp_context_h context = nullptr;
  ucp_worker_h worker = nullptr;
  ucp_listener_h listener = nullptr;
  std::vector<message> messages;
  std::vector<ucs_status_t> failures;
  std::function<void()> on_failed;  // called with each of them
  std::vector<ucp_conn_request_h> requests;
  std::vector<const outcome*> ended;  // by a callback, in this order
  ucs_status_t handler_returns = UCS_OK;
  std::uint32_t handler_flags = 0;

  static constexpr unsigned message_id = 7;
  void set_handler();

 private:
  struct operation;
  outcome& track(const std::function<ucs_status_ptr_t(ucp_request_param_t&)>& call,
                 bool receives = false, std::uint32_t flags = 0);

  std::vector<std::unique_ptr<operation>> operations_;
};

}  // namespace ucx::test
