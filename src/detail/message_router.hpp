// Receives every frame of a worker and hands it to whom it concerns; sends frames without an owner.
#pragma once

#include <cstddef>
#include <span>
#include <system_error>
#include <vector>

#include "detail/frame.hpp"
#include "detail/message_operation.hpp"
#include "detail/pool.hpp"
#include "detail/ucp_api.hpp"

namespace ucx::detail {

class endpoint_core;
class worker_core;

class message_router {
 public:
  /// UCX's id of our active messages; applications have all others. UCX keeps a table up to the
  /// largest id in use, so it is small.
  static constexpr unsigned message_id = 0xff;

  explicit message_router(worker_core& worker) noexcept : worker_(worker) {}
  message_router(const message_router&) = delete;
  message_router& operator=(const message_router&) = delete;

  /// Tells UCX where our messages go.
  void open(std::error_code& ec);

  /// The operations of ours that peers may answer.
  message_table& questions() noexcept { return questions_; }

  /// Sends a frame, with an optional payload, that nobody waits for. A failure fails the
  /// connection.
  void send(endpoint_core& to, const frame& said, std::span<const std::byte> payload = {},
            bool with_reply_endpoint = false);

 private:
  struct outgoing {
    message_router* router = nullptr;
    endpoint_core* to = nullptr;
    frame::bytes header = {};
    std::vector<std::byte> payload;
  };

  static ucs_status_t on_message(void* self, const void* header, std::size_t header_length,
                                 void* data, std::size_t length, const ucp_am_recv_param_t* params);
  static void on_sent(void* request, ucs_status_t status, void* sent);
  void received(const frame& heard, std::span<const std::byte> payload,
                const ucp_am_recv_param_t& params);
  void route(endpoint_core& from, const frame& heard, std::span<const std::byte> payload);
  void sent(outgoing& message, ucs_status_t status);

  worker_core& worker_;
  message_table questions_;
  pool<outgoing> outgoing_;
};

}  // namespace ucx::detail
