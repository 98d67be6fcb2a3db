// The calls that were made over the connections of a worker, and the messages that carry calls.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/id_table.hpp"
#include "base/intrusive_list.hpp"
#include "call/call_message.hpp"
#include "message/message_refusals.hpp"
#include "rpc/call_landing.hpp"
#include "rpc/call_operation.hpp"
#include "ucx/message.hpp"

namespace ucx::detail {

class endpoint_core;
class worker_core;

/// The owner of the numbers of the messages of calls, and the numbers.
inline constexpr std::string_view call_owner = "ucxio calls";
inline constexpr std::uint32_t call_messages = 1;    ///< Of calls, bindings and cancellations.
inline constexpr std::uint32_t answer_messages = 2;  ///< Of answers.

/// A part of the worker. Everything but the handler of answers happens under the worker's lock.
class call_exchange final : private message_refusals {
 public:
  explicit call_exchange(worker_core& worker);
  call_exchange(const call_exchange&) = delete;
  call_exchange& operator=(const call_exchange&) = delete;

  /// Takes the answers of peers from now on.
  void listen();

  std::uint64_t add(call_operation& begun);
  void remove(call_operation& ended) noexcept;
  /// The send of a call has ended.
  void sent(std::uint64_t number, std::error_code outcome) noexcept;

  /// Sends `what` to the peer, whose handler of this number gets it. Its bytes become those of the
  /// send.
  static request send(const std::shared_ptr<endpoint_core>& to, std::uint32_t number,
                      call_message what, std::chrono::nanoseconds timeout = {});
  /// As `send`, of one with parts. Its memory is the caller's until the request is done.
  static request lend(const std::shared_ptr<endpoint_core>& to, std::uint32_t number,
                      const call_message& what, std::chrono::nanoseconds timeout);
  /// As `send`, of one with parts, which are copied.
  static request copy(const std::shared_ptr<endpoint_core>& to, std::uint32_t number,
                      call_message what);
  /// Tells the peer of the parts: the head is whole then.
  static void tell_parts(call_message& what);
  /// As `send`, without a request.
  static void post(const std::shared_ptr<endpoint_core>& to, std::uint32_t number,
                   call_message what) noexcept;
  /// Lets a send go on without its request. Takes the lock.
  static void leave(request send) noexcept;

 private:
  void answered(message&& came);
  void take(message&& came, call_operation& call);
  void answered_beside(message&& came, std::uint64_t number, const call_parts& told);
  void receive(const std::shared_ptr<message>& came, const std::shared_ptr<landed_message>& into,
               call_operation& call);
  call_operation* find(std::uint64_t number, const endpoint& from) noexcept;
  void refused(endpoint_core& by, std::uint64_t message) noexcept override;

  worker_core& worker_;
  bool listens_ = false;
  id_table<call_operation> calls_;
  intrusive_list<call_operation, exchanged_call_tag> all_;
};

}  // namespace ucx::detail
