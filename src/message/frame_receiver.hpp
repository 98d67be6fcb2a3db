// Receives every frame and parcel of a worker, and hands it to whom it concerns.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.hpp"
#include "ucp/ucp_api.hpp"
#include "wire/frame.hpp"

namespace ucx::detail {

class endpoint_core;
class worker_core;

/// UCX calls it, in the worker's rounds and under its lock.
class frame_receiver {
 public:
  explicit frame_receiver(worker_core& worker) noexcept : worker_(worker) {}
  frame_receiver(const frame_receiver&) = delete;
  frame_receiver& operator=(const frame_receiver&) = delete;

  /// Tells UCX where our messages go.
  result<void> open();

 private:
  static ucs_status_t on_message(void* self, const void* header, std::size_t header_length,
                                 void* data, std::size_t length, const ucp_am_recv_param_t* params);
  static ucs_status_t on_parcel(void* self, const void* header, std::size_t header_length,
                                void* data, std::size_t length, const ucp_am_recv_param_t* params);
  /// Hands a parcel to its connection, inside UCX's callback; returns whether `lasting` was kept.
  template <class Parcel>
  bool deliver(const Parcel& read, std::uint64_t session, std::span<const std::byte> payload,
               void* lasting) const noexcept;
  void received(const frame& heard, std::span<const std::byte> payload,
                const ucp_am_recv_param_t& params);
  void route(endpoint_core& from, const frame& heard, std::span<const std::byte> payload);

  worker_core& worker_;
};

}  // namespace ucx::detail
