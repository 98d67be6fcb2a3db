// A simulated process that speaks our protocol frame by frame, truthfully or not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support/simulated/raw_peer.hpp"
#include "ucx/peer_address.hpp"
#include "wire/frame.hpp"
#include "wire/parcel.hpp"

namespace ucx::test {

/// Says what a test lets it say, and keeps what it hears.
class frame_peer : public raw_peer {
 public:
  frame_peer(fake_network& network, std::string name);
  /// Closes what it opened.
  ~frame_peer();

  struct heard_frame {
    detail::frame said;
    std::vector<std::byte> payload;
    ucp_ep_h reply_to = nullptr;

    /// Returns the worker address in a greeting; empty if there is none.
    worker_address address() const;
  };

  worker_address its_address();
  /// Connects without a word.
  ucp_ep_h reach(const worker_address& peer);
  ucp_ep_h reach(std::uint16_t port);
  ucp_ep_h take(ucp_conn_request_h request);
  /// Leaves an endpoint to the test, which has closed it.
  void forget(ucp_ep_h closed) { std::erase(opened_, closed); }

  void say(ucp_ep_h to, const detail::frame& said, std::span<const std::byte> payload = {},
           std::uint32_t flags = 0);
  /// Sends whatever bytes as the header of a message of ours.
  void say_bytes(ucp_ep_h to, std::span<const std::byte> header,
                 std::span<const std::byte> payload = {}, std::uint32_t flags = 0,
                 unsigned id = 0xff);
  /// Sends a parcel, with the user's header behind it.
  void say(ucp_ep_h to, const detail::parcel& said, std::span<const std::byte> user_header = {},
           std::span<const std::byte> payload = {});
  /// Says hello with an address to answer to, and returns when the peer has welcomed it.
  bool open_session(ucp_ep_h to, std::uint64_t session);

  /// Welcomes whoever says hello by worker address, and keeps the endpoint to the last of them.
  void welcome_everybody();

  /// Waits for a frame of this kind that was not waited for before, and takes it out.
  bool await(detail::opcode code, heard_frame& into,
             std::chrono::nanoseconds limit = std::chrono::seconds(10));
  std::size_t count(detail::opcode code) const;

  struct heard_parcel {
    detail::parcel said;
    std::vector<std::byte> user_header;
    std::vector<std::byte> payload;
  };
  /// Waits for a parcel of this kind that was not waited for before, and takes it out.
  bool await(detail::parcel_code code, heard_parcel& into,
             std::chrono::nanoseconds limit = std::chrono::seconds(10));

  std::vector<heard_parcel> parcels;
  std::uint64_t room = 0;  ///< What it grants those that it welcomes, and those it says hello to.
  bool lends = false;      ///< It introduces itself as one that lends and borrows room.
  std::uint64_t granted = 0;  ///< What the last of them granted.
  std::vector<heard_frame> heard;
  std::size_t unreadable = 0;  ///< Messages to our id that were no frames.
  /// Called for every frame, from progress, after it was kept.
  std::function<void(const heard_frame&)> on_frame;
  ucp_ep_h guest = nullptr;  ///< The last one that was welcomed.
  std::uint64_t guest_session = 0;

 private:
  struct message;
  static ucs_status_t on_message(void* self, const void* header, std::size_t header_length,
                                 void* data, std::size_t length, const ucp_am_recv_param_t* params);
  static ucs_status_t on_parcel(void* self, const void* header, std::size_t header_length,
                                void* data, std::size_t length, const ucp_am_recv_param_t* params);
  static void on_sent(void* request, ucs_status_t status, void* message);
  void answer_hello(const heard_frame& hello);
  std::vector<std::byte> introduced(std::vector<std::byte> greeting = {}) const;

  std::vector<std::unique_ptr<message>> messages_;
  std::vector<ucp_ep_h> opened_;
  bool welcomes_ = false;
};

}  // namespace ucx::test
