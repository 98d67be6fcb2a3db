// The session of a connection: hello, welcome, and goodbye.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "ucp/ucp_api.hpp"
#include "ucx/connection_report.hpp"
#include "wire/frame.hpp"
#include "wire/introduction.hpp"

namespace ucx::detail {

class connection_messages;
class endpoint_core;

/// The two workers tell each other of themselves and of the connection. The initiator says hello,
/// the acceptor welcomes or refuses. The side that leaves says bye, and hears a farewell. Frames
/// that no operation waits for are left to UCX's error handler and the heartbeat. A part of the
/// connection; everything happens under the worker's lock.
///
/// States of this side's hello:
///
///     from     | to      | when
///     unsent   | sent    | UCX has sent it: the two are connected
///     unsent,  | refused | the peer has refused it, or was declined, which is seen to soon
///     sent     |         |
///     refused  | sent    | the peer's refusal was seen to: the connection fails, or another
///              |         | hello is on its way
///
/// States of this side's bye:
///
///     from     | to       | when
///     unsaid   | said     | this side says nothing more
///     said     | answered | the peer's farewell has come; one that answers no bye is ignored
class endpoint_session {
 public:
  endpoint_session(endpoint_core& connection, connection_messages& messages,
                   connection_terms terms);
  endpoint_session(const endpoint_session&) = delete;
  endpoint_session& operator=(const endpoint_session&) = delete;

  /// Returns the number by which the peer finds what this side says; 0 as long as there is none.
  std::uint64_t number() const noexcept { return number_; }
  /// Returns the number by which what the peer says is found here. It is the same number, except
  /// where a worker has connected to its own listener: both ends are here then.
  std::uint64_t number_here() const noexcept { return number_here_; }
  /// Returns what the peer has said of itself.
  const introduction& theirs() const noexcept { return theirs_; }

  void say_hello(clock::time_point connect_deadline);
  void hello_sent() noexcept {
    if (hello_ == hello::unsent) hello_ = hello::sent;
  }
  /// Returns whether UCX has connected the two, as far as this side has said hello.
  bool is_hello_sent() const noexcept { return hello_ != hello::unsent; }
  /// Bounds the wait for the peer's hello; zero, or less: as long as the worker's options say.
  void await_hello(std::chrono::nanoseconds limit);
  /// Takes the number of a peer's hello; the session is not open yet.
  void take_number(std::uint64_t number);
  /// As `take_number`, where the peer is `other`, which is at this worker, too.
  void take_number_beside(endpoint_session& other);
  /// Remembers the address that its peer's hello carried.
  void set_address(std::vector<std::byte> address) { address_ = std::move(address); }
  /// Returns whether it is of a hello with this address, or over this endpoint.
  bool came_by(std::span<const std::byte> address, ucp_ep_h over) const noexcept;

  /// UCX has connected to a peer that is not greeted.
  void wired_up();

  /// Says whether this side wants the connection.
  result<void> check(const introduction& theirs) const;
  void welcome(introduction&& theirs, std::uint64_t room);
  /// Answers hello with `why`, and drops the connection when the peer has gone, or soon.
  void refuse(const failure& why);
  /// Refuses every hello from here on.
  void refuse_hello(failure why) { refusal_ = std::move(why); }
  bool refuses_hello() const noexcept { return static_cast<bool>(refusal_.code); }
  /// The peer has answered hello.
  void welcomed(const frame& answer, std::span<const std::byte> payload);

  /// Tells the peer, once, that this side will say nothing more, and why.
  void say_bye(std::error_code why);
  void peer_said_bye(std::error_code why);
  void peer_said_farewell() noexcept;
  bool heard_farewell() const noexcept { return bye_ == bye::answered; }
  /// Returns whether the peer is about to go, and what that end is called.
  bool is_leaving() const noexcept { return leaving_; }
  const failure& why_leaving() const noexcept { return leaving_as_; }
  /// The connection ends by the clock, which needs no memory: as with a peer that has left.
  void part_soon(std::error_code why) noexcept;
  /// Returns until when the peer has to answer, or to go.
  clock::time_point deadline() const noexcept { return deadline_; }

 private:
  enum class hello { unsent, sent, refused };
  enum class bye { unsaid, said, answered };
  std::vector<std::byte> introduce(std::string words) const;
  result<void> check_transports() const;
  void draw_number();
  void establish(introduction&& theirs, std::uint64_t room);
  void refused(const failure& why, bool finally);
  void decline(const failure& why);
  void leave_soon(std::error_code why) noexcept;

  endpoint_core& connection_;
  connection_messages& messages_;
  const connection_terms terms_;
  std::uint64_t number_ = 0;
  std::uint64_t number_here_ = 0;
  introduction theirs_;
  std::vector<std::byte> address_;
  clock::time_point deadline_ = clock::time_point::max();
  unsigned hellos_ = 0;
  hello hello_ = hello::unsent;
  failure refusal_;  // of every hello
  bye bye_ = bye::unsaid;
  bool leaving_ = false;  // the peer
  failure leaving_as_;    // what its end is called
};

}  // namespace ucx::detail
