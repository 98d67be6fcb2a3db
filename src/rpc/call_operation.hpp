// A call of a function of the peer, as its caller sees it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "base/intrusive_list.hpp"
#include "call/call_message.hpp"
#include "rpc/call_landing.hpp"
#include "rpc/call_result.hpp"
#include "rpc/call_windows.hpp"
#include "ucx/call_function.hpp"
#include "ucx/hybrid_clock.hpp"
#include "ucx/request.hpp"
#include "worker/alarm.hpp"
#include "worker/looked_at_operation.hpp"

namespace ucx::detail {

class call_exchange;
struct exchanged_call_tag {};

/// The facts of a call. It refers to the caller's objects.
struct wanted_call {
  call_kind kind = call_kind::call;
  const call_function& called;
  std::uint64_t number = 0;  ///< Of the function; of bound ones.
  std::span<const std::byte> arguments = {};
  std::span<const sent_part> parts = {};           ///< The memory beside them.
  call_landing landing = {};                       ///< Of the memory beside the answer.
  std::shared_ptr<hybrid_clock> stamps = nullptr;  ///< Of the channel; null: it has none.
};

/// It ends with the peer's answer, or before. How far it has come:
///
///     from    | to      | when
///     waiting | sent    | UCX was given the call, or its announcement: the function may run
///     waiting | over    | it was given up, or the connection was lost: the function does not run
///     sent    | over    | the answer is here; or it was given up, which the peer is told; or the
///             |         | connection was lost
///
/// It is done when its memory is unused, too: the peer uses no window, and UCX has no part.
/// A peer that does not let go in time loses the connection.
/// Its send knows whether it was sent: that is asked when it matters.
class call_operation final : public operation,
                             public looked_at_operation,
                             public list_hook<exchanged_call_tag> {
 public:
  static constexpr std::size_t most_idle = 256;

  /// Starts, and sends the call. `under_way` is the count of the channel. A call that throws has
  /// not begun.
  void begin(const std::shared_ptr<endpoint_core>& over, const wanted_call& wanted,
             std::chrono::nanoseconds timeout, std::shared_ptr<call_result> result,
             std::shared_ptr<std::size_t> under_way, call_windows windows);

  std::uint64_t number() const noexcept { return number_; }
  /// Returns where the memory beside the answer goes.
  const call_landing& landing() const noexcept { return landing_; }
  /// The answer has more of it than that.
  void memory_refused() noexcept;
  /// The answer is here: its head, what stands behind that, and the memory beside it.
  void answered(std::span<const std::byte> head, std::vector<std::byte> body,
                std::vector<landed_part> parts = {});
  /// The answer is on its way, and could not be received.
  void answer_lost(std::error_code why) noexcept;
  /// Its answer is received by this request, which is given up with it.
  void receives(std::weak_ptr<request> answer) noexcept { receiving_ = std::move(answer); }
  /// Returns whether an answer is on its way already: there is one.
  bool is_receiving() const noexcept { return !receiving_.expired(); }
  /// Returns the time until its deadline.
  std::chrono::nanoseconds time_left() const noexcept;
  /// Returns the code of what the function threw, after the end.
  std::error_code cause() const noexcept { return cause_; }
  /// The peer has refused the message of this number, which may be that of this call.
  bool was_refused(std::uint64_t message) const noexcept;
  /// The send of the call has failed.
  void send_failed(std::error_code why) noexcept;

  void look() noexcept override;
  void left() noexcept override;
  void give_up(errc why) noexcept override;
  void connection_failed(std::error_code why) noexcept override;
  bool awaits_peer() const noexcept override { return true; }
  std::string describe() const override;
  request_attributes attributes() const override {
    return {.kind = operation_kind::call, .size = size_};
  }

 protected:
  void recycle() noexcept override;

 private:
  void send(const wanted_call& wanted);
  void send_over(endpoint_core& over, call_message what);
  bool was_sent() const noexcept;
  void end_unknown(std::error_code why) noexcept;
  void finish(std::error_code outcome, std::string text = {}) noexcept;
  void end_if_unused() noexcept;
  void linger() noexcept;
  bool is_unused() const noexcept;
  call_exchange& exchange() const;

  std::string name_;
  std::string signature_;
  std::string text_;  // of a failure
  std::shared_ptr<call_result> result_;
  std::shared_ptr<std::size_t> under_way_;
  std::shared_ptr<hybrid_clock> stamps_;
  std::uint64_t number_ = 0;
  std::uint64_t message_ = 0;  // the number of the message that it was sent in at once
  std::uint64_t size_ = 0;
  request send_;               // until all of it is sent
  bool may_be_sent_ = false;   // of a call without `send_`
  bool is_announced_ = false;  // it is longer than a whole message
  std::weak_ptr<request> receiving_;
  call_landing landing_;
  std::error_code cause_;
  std::shared_ptr<const call_message> lent_;  // where it has parts
  call_windows windows_;
  // At memory that is in use when it is over. An orderly close does not wait for a call that has
  // windows: it serves the peer's accesses no more.
  std::unique_ptr<alarm> look_;
  bool has_windows_ = false;
  bool is_lending_ = false;               // its send begins
  std::shared_ptr<endpoint_core> keeps_;  // where the request is gone, and it is not done
  bool is_over_ = false;
  std::error_code outcome_;
};

}  // namespace ucx::detail
