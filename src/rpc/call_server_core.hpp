// The calls that the peers of a worker have made, on their way to the functions and back.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "call/call_directory.hpp"
#include "call/call_message.hpp"
#include "rpc/call_landing.hpp"
#include "ucx/call_server.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/message.hpp"
#include "ucx/request.hpp"

namespace ucx::detail {

class endpoint_core;
class worker_core;

/// Calls are handled on the thread that drives the worker. The object may end on another one. A
/// call for which there is no memory is refused. A call that came whole runs at once. A call whose
/// function answers later stays under way until then, or until its caller gives up. How far a call
/// has come:
///
///     from      | to        | when
///     arriving  | answering | all of it was here, and the function has run; or it was refused
///     arriving  | over      | its caller gave up, or its connection was lost: it is not run
///     answering | over      | the answer was sent; or the caller gave up, or was lost
class call_server_core : public std::enable_shared_from_this<call_server_core> {
 public:
  call_server_core(std::shared_ptr<worker_core> worker, const call_table& calls,
                   call_server_options options);

  /// Takes the calls of peers from now on.
  result<void> listen();
  /// Takes none any more.
  void close() noexcept;
  std::size_t under_way() const noexcept;
  bool is_inherited() const noexcept { return made_.is_inherited(); }

 private:
  /// A call that is under way, by its connection, and by its place among those of this server.
  using key = std::pair<std::uint64_t, std::uint64_t>;
  /// One that runs is ended by what runs it. Another one is ended by what takes it out of the calls
  /// that are under way, or has it run.
  enum class step { arriving, running, answering };
  struct served_call {
    explicit served_call(endpoint from);

    message came = {};
    endpoint peer;
    std::shared_ptr<endpoint_core> over;
    landed_message here = {};              ///< Where it was announced, or has memory beside it.
    std::uint64_t memory = 0;              ///< Bytes beside it that are here, or on their way.
    std::span<const std::byte> wire = {};  ///< The body of the message.
    clock::time_point deadline = clock::time_point::max();
    bool is_one_way = false;
    std::uint64_t number = 0;
    clock_stamp moment = {};  ///< When all of it was here.
    bool is_stamped = false;  ///< The caller has a clock, too.
    std::uint64_t place = 0;  ///< 0: it is not under way.
    step at = step::arriving;
    bool has_run = false;
    bool is_answered = false;
    bool is_deferred = false;  ///< The answer comes later. With `noting_`, as the next two.
    bool is_early = false;     ///< It has come before the function has returned.
    std::optional<call_message> early = {};
    std::string told_later = {};  ///< Its name, where the audit tells how it ended.
    bool is_bound = false;        ///< It came by number.
    std::stop_source stop{std::nostopstate};
    request pending = {};  ///< The receive, or the send of the answer.
    request caller = {};   ///< Of a deferred one: done when the caller waits no more.
  };
  enum class room { noted, full, closed, memory_full };
  using shared_call = std::shared_ptr<served_call>;
  class caller_watch;
  class late_replies;
  class late_reply;
  class late_task;

  void arrived(message&& came) noexcept;
  shared_call taken(message&& came);
  void begin(const shared_call& call);
  void run_whole(const shared_call& call) noexcept;
  void begin_beside(const shared_call& call, const call_parts& told);
  std::optional<call_directory::landing> landing_of(const shared_call& call,
                                                    const asked_call& asked) const;
  void receive(const shared_call& call, const call_parts& told, const call_memory& where);
  std::uint64_t memory_of(std::uint64_t connection) const noexcept;
  void received(const key& which, std::error_code outcome) noexcept;
  void run(const shared_call& call);
  std::optional<call_message> answer_of(const shared_call& call, const asked_call& asked,
                                        call_context& context);
  std::optional<call_message> run_function(const shared_call& call, const asked_call& asked,
                                           call_context& context);
  room defer(const shared_call& call);
  void watch(const shared_call& call);
  void give_memory_back(served_call& call) noexcept;
  void undo_deferral(served_call& call) noexcept;
  bool take_waiting(const key& which) noexcept;
  shared_call take_deferred(const key& which, std::optional<call_message>& made) noexcept;
  void answer_late(const key& which, std::optional<call_message> made) noexcept;
  void send_late(const shared_call& call, std::optional<call_message> made) noexcept;
  static void drop(served_call& call) noexcept;
  static void tell_late(served_call& call, call_outcome ended) noexcept;
  void cancel(std::uint64_t connection, std::uint64_t number) noexcept;
  void refuse(const shared_call& call, const call_failure& why);
  void give_back(const shared_call& call) noexcept;
  void stamp(const served_call& call, call_message& answer) const noexcept;
  call_context context_of(const served_call& call) const;
  void answer(const shared_call& call, call_message answer);
  std::chrono::nanoseconds time_left(const served_call& call) const noexcept;
  std::size_t count_of(std::uint64_t connection) const noexcept;
  bool has_room(const served_call& call) const noexcept;
  room note(const shared_call& call, std::size_t most);
  room place(const shared_call& call, std::size_t most);
  shared_call start_running(const key& which) noexcept;
  void end_running(const shared_call& call) noexcept;
  bool is_running() const noexcept;
  shared_call any_stopped() noexcept;
  void forget(const key& which) noexcept;
  static key key_of(const served_call& call);

  const process_stamp made_;
  const std::weak_ptr<worker_core> worker_;
  const std::shared_ptr<call_directory> functions_;
  const call_server_options options_;
  bool is_of_server_ = false;  // whose rules hold
  mutable std::mutex noting_;  // with the rest
  std::map<key, shared_call> calls_;
  std::uint64_t last_place_ = 0;
  std::size_t running_ = 0;  // of `calls_`
  bool is_closed_ = false;
};

}  // namespace ucx::detail
