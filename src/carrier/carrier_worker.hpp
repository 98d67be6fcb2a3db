// A worker over sockets: what it waits for, what is due, and who is told.
#pragma once

#include <sys/socket.h>
#include <ucp/api/ucp.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/owned_descriptor.hpp"
#include "base/pool.hpp"
#include "carrier/carrier_request.hpp"
#include "carrier/carrier_source.hpp"
#include "carrier/carrier_timer.hpp"
#include "carrier/payload_buffer.hpp"
#include "carrier/tls.hpp"
#include "ucp/withdrawn_send.hpp"

namespace ucx::detail {

class carrier_endpoint;
class unix_trust;

/// Every call but `signal` is of one thread at a time, as with UCX. Callbacks run in `progress`
/// only. An endpoint that is closed in a round goes at its end, because the system may have told of
/// it.
class carrier_worker final : private token_observer {
 public:
  /// `tls`: nothing where its connections are in the clear.
  carrier_worker(std::string name, std::shared_ptr<tls_context> tls);
  carrier_worker(const carrier_worker&) = delete;
  carrier_worker& operator=(const carrier_worker&) = delete;
  ~carrier_worker();

  /// Returns UCS_OK, or why the system has nothing to wait on.
  ucs_status_t open() noexcept;

  const std::string& name() const noexcept { return name_; }
  int event_fd() const noexcept { return epoll_.get(); }
  /// One round. Returns how much happened.
  unsigned progress() noexcept;
  /// Returns UCS_OK where nothing happens until the event descriptor is readable, else
  /// UCS_ERR_BUSY.
  ucs_status_t arm() noexcept;
  /// Wakes who sleeps on the descriptor. Safe from any thread.
  void signal() noexcept;

  void set_handler(const ucp_am_handler_param_t& params);
  bool has_handler(unsigned id) const noexcept { return handlers_[id & 0xffU].call != nullptr; }
  /// Calls the handler of `id`. `lasting`: the payload may be kept. Returns whether it was.
  bool deliver(carrier_endpoint& from, unsigned id, const std::byte* header,
               std::size_t header_size, std::byte* payload, std::size_t size, bool lasting);
  /// Tells the handler of `id` that a long message begins, as UCX tells of a rendezvous. The
  /// handler may give the payload a place (`am_recv_data_nbx`). It is called again when all has
  /// come.
  void announce(carrier_endpoint& from, unsigned id, std::span<const std::byte> header,
                std::size_t size);
  /// The place that `of` has is its owner's again. `of` is what `am_recv_data_nbx` returned, or
  /// another request.
  void withdraw_place(const void* of) noexcept;

  // For endpoints and listeners.
  /// Has the system tell `whom` of `events`. Errors: those of the system, as UCX's.
  ucs_status_t watch(int descriptor, carrier_source& whom, std::uint32_t events) noexcept;
  void forget(int descriptor) noexcept;
  /// Has the endpoint look again in the next round.
  void look_again(carrier_endpoint& at) noexcept;
  void failed(carrier_endpoint& which) noexcept;
  /// Something is due that no descriptor tells of.
  void wake() noexcept;
  void add(std::unique_ptr<carrier_endpoint> made);
  /// Its payload has a place, or has it no more.
  void has_place(carrier_endpoint& which) { placed_.push_back(&which); }
  void has_no_place(carrier_endpoint& which) noexcept { std::erase(placed_, &which); }
  /// Takes it out of everything; it goes at once, or at the end of this round.
  void bury(carrier_endpoint& gone) noexcept;
  void bury(std::unique_ptr<carrier_source> gone) noexcept;
  /// Returns what connections by addresses of that family speak; null: they are in the clear.
  tls_context* tls(::sa_family_t family) const noexcept {
    return family == AF_UNIX && clear_unix ? nullptr : tls_.get();
  }
  /// Room for what is not decrypted yet, and for what is encrypted; empty without TLS.
  std::span<std::byte> cipher_scratch() const noexcept {
    return {cipher_scratch_.get(), tls_ ? tls_context::scratch_size : 0};
  }
  /// Looks at the connection again before its peer's certificate ends.
  void expect_end(const carrier_endpoint& of) noexcept;
  /// Returns the number of this round.
  std::uint64_t round() const noexcept { return round_; }
  /// Room for what is read at a time; parts of messages are kept by their endpoints.
  std::byte* scratch() noexcept { return scratch_.get(); }
  /// A message's head and header, and many short messages. Most of a long payload goes past it.
  static constexpr std::size_t scratch_size = std::size_t{16} << 10U;
  payload_buffers& buffers() noexcept { return buffers_; }
  /// A connection is about to be read from.
  void note_reader(const carrier_endpoint& reader) noexcept;
  /// Returns whether several connections were read from, some rounds ago at most.
  bool is_shared() const noexcept { return round_ - shared_round_ < rounds_of_attention; }
  /// Returns whether a connection was read from, some rounds ago at most.
  bool is_read_from() const noexcept { return round_ - read_round_ < rounds_of_attention; }

  carrier_request& take_request(const ucp_request_param_t& params);
  /// It is over, with `status`: its caller is told in this round or the next.
  void end(carrier_request& request, ucs_status_t status) noexcept;
  void free(carrier_request& request) noexcept;
  /// See `ucp_api::withdraw_send`.
  withdrawn_send withdraw(carrier_request& request, bool may_drop) noexcept;
  bool has_untold() const noexcept { return !ended_.empty(); }

  /// The context's, of users at Unix sockets.    REQUIRES: it outlives the worker.
  unix_trust* trust = nullptr;
  /// As in the configuration; before its first connection.
  bool clear_unix = false;

 private:
  struct handler {
    ucp_am_recv_callback_t call = nullptr;
    void* with = nullptr;
  };
  /// The descriptor by which `signal` wakes.
  class waker final : public carrier_source {
   public:
    void happened(std::uint32_t events) noexcept override;
    owned_descriptor descriptor;
  };

  /// Peers that have said something within so many rounds are likely to say more.
  static constexpr std::uint64_t rounds_of_attention = 256;

  void tokens_changed() noexcept override { signal(); }
  void check_tokens() noexcept;
  void check_certificates() noexcept;
  unsigned tell_ended() noexcept;
  unsigned tell_failed() noexcept;
  unsigned look_at_ready() noexcept;
  void recycle(carrier_request& request) noexcept;

  std::string name_;
  owned_descriptor epoll_;
  waker waker_;
  std::array<handler, 256> handlers_ = {};
  std::unique_ptr<std::byte[]> scratch_;
  const std::shared_ptr<tls_context> tls_;
  std::unique_ptr<std::byte[]> cipher_scratch_;
  std::unique_ptr<carrier_timer> certificate_timer_;  // null: there are no certificates
  std::optional<std::chrono::steady_clock::time_point> next_end_;
  std::uint64_t tokens_ = 0;  // the version that the connections were looked at by
  std::uint64_t round_ = rounds_of_attention;
  std::uint64_t read_round_ = 0;                   // in which a connection was read from last
  std::uint64_t shared_round_ = 0;                 // in which it was another one than before
  const carrier_endpoint* last_reader_ = nullptr;  // may be gone
  payload_buffers buffers_;
  pool<carrier_request> idle_;
  request_list ended_;
  std::vector<std::unique_ptr<carrier_endpoint>> endpoints_;
  std::vector<carrier_endpoint*> ready_;
  std::vector<carrier_endpoint*> failed_;
  std::vector<carrier_endpoint*> placed_;
  std::vector<std::unique_ptr<carrier_source>> buried_;
  bool in_round_ = false;
};

}  // namespace ucx::detail
