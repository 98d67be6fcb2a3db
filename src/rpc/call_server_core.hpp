// The calls that the peers of a worker have made, on their way to the functions and back.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "call/call_directory.hpp"
#include "call/call_message.hpp"
#include "ucx/call_server.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/message.hpp"
#include "ucx/request.hpp"

namespace ucx::detail {

class endpoint_core;
class worker_core;

/// Calls are handled on the thread that drives the worker, but for functions that an executor has.
/// The object may end on another one. How far a call has come:
///
///     from     | to      | when
///     arriving | running | all of it is here
///     arriving | over    | its caller gave up, or its connection was lost: it is not run
///     running  | over    | the function has returned, and its answer was sent
class call_server_core : public std::enable_shared_from_this<call_server_core> {
 public:
  call_server_core(std::shared_ptr<worker_core> worker, const call_table& calls,
                   call_server_options options);

  /// Takes the calls of peers from now on.
  result<void> listen();
  /// Takes none any more.
  void close() noexcept;
  std::size_t under_way() const noexcept;

 private:
  /// A call that is under way, by its connection and its number.
  using key = std::pair<std::uint64_t, std::uint64_t>;
  struct served_call {
    explicit served_call(endpoint from);

    message came = {};
    endpoint peer;
    std::shared_ptr<endpoint_core> over;
    std::vector<std::byte> body = {};      ///< Where it was announced.
    std::span<const std::byte> wire = {};  ///< The body of the message.
    clock::time_point deadline = clock::time_point::max();
    bool is_one_way = false;
    std::uint64_t number = 0;
    request pending = {};  ///< The receive, or the watch.
    std::stop_source stop = {};
  };

  void arrived(message&& came);
  void begin(const std::shared_ptr<served_call>& call);
  void receive(const std::shared_ptr<served_call>& call);
  void run(const std::shared_ptr<served_call>& call);
  void run_elsewhere(const std::shared_ptr<served_call>& call, const asked_call& asked);
  call_message answer_of(const served_call& call, const asked_call& asked, call_context& context);
  void cancel(const key& which) noexcept;
  void refuse(const served_call& call, const call_failure& why);
  call_context context_of(const served_call& call) const;
  void answer(const served_call& call, call_message answer) const noexcept;
  bool note(const std::shared_ptr<served_call>& call);
  bool forget(const served_call& call) noexcept;
  static key key_of(const served_call& call);

  const std::weak_ptr<worker_core> worker_;
  const std::shared_ptr<call_directory> functions_;
  const call_server_options options_;
  mutable std::mutex noting_;  // with the next two
  std::map<key, std::shared_ptr<served_call>> calls_;
  bool is_closed_ = false;
};

}  // namespace ucx::detail
