// Receives every frame and parcel of a worker, and hands it to whom it concerns.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.hpp"
#include "ucp/ucp_api.hpp"
#include "wire/frame.hpp"

namespace ucx::detail {

class endpoint_core;
class peer_question;
class worker_core;

/// UCX calls it, in the worker's rounds and under its lock.
class frame_receiver {
 public:
  explicit frame_receiver(worker_core& worker) noexcept;
  frame_receiver(const frame_receiver&) = delete;
  frame_receiver& operator=(const frame_receiver&) = delete;

  /// Tells UCX where our messages go. After an error some of them may, until `close()`.
  result<void> open();
  /// Has UCX drop those that it was told of.
  void close() noexcept;

 private:
  ucs_status_t take(unsigned id, ucp_am_recv_callback_t by) noexcept;
  static ucs_status_t on_message(void* self, const void* header, std::size_t header_length,
                                 void* data, std::size_t length, const ucp_am_recv_param_t* params);
  static ucs_status_t on_parcel(void* self, const void* header, std::size_t header_length,
                                void* data, std::size_t length, const ucp_am_recv_param_t* params);
  /// Hands a parcel to its connection, inside UCX's callback; returns whether `lasting` was kept.
  template <class Parcel>
  bool deliver(const Parcel& read, std::uint64_t session, std::span<const std::byte> payload,
               const ucp_am_recv_param_t& params) const noexcept;
  /// Returns the connection of `session`. Over sockets it is known by which connection a message
  /// came: one that names the session of another is lost.
  endpoint_core* sender(std::uint64_t session, const ucp_am_recv_param_t& params) const noexcept;
  void received(frame& heard, std::span<const std::byte> payload,
                const ucp_am_recv_param_t& params);
  /// A long frame begins to come over a socket: its payload may go straight to its place.
  void begins(const frame& heard, void* descriptor, std::size_t size,
              const ucp_am_recv_param_t& params);
  /// Returns what the peer answers; null if it does not.
  peer_question* answered_by(const endpoint_core& from, const frame& heard) const noexcept;
  void route(endpoint_core& from, const frame& heard, std::span<const std::byte> payload);

  worker_core& worker_;
  const bool is_of_ucx_;
  bool takes_frames_ = false;
  bool takes_parcels_ = false;
};

}  // namespace ucx::detail
