// The questions of a client to its server.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "base/clock.hpp"
#include "base/intrusive_list.hpp"
#include "base/result.hpp"
#include "client/client_session.hpp"
#include "client/known_server.hpp"
#include "connection/endpoint_channel.hpp"
#include "ucx/request.hpp"
#include "wire/control_message.hpp"
#include "worker/start_blocking.hpp"

namespace ucx::detail {

class client_call;
class endpoint_core;
class worker_core;

struct call_tag {};
struct arrived_call_tag {};

/// Puts questions into words of the protocol, knows the calls that ask them, and counts both. The
/// callers take the answers apart. A part of a client; safe from any thread unless a
/// function says otherwise.
class client_questions {
 public:
  using question = client_session::question;

  /// A server answers more questions than these at a time.
  static constexpr std::size_t most_at_once = 64;
  /// Room in a message for each of several files or names, beside name and content.
  static constexpr std::size_t overhead_of_each = 16;

  /// `on_revoke` is told of regions that the server withdraws, under the worker's lock.
  client_questions(worker_core& worker, endpoint_core& connection,
                   std::function<void(std::uint64_t region)> on_revoke);
  client_questions(const client_questions&) = delete;
  client_questions& operator=(const client_questions&) = delete;

  worker_core& worker() const noexcept { return worker_; }
  endpoint_core& connection() const noexcept { return connection_; }
  known_server& server() noexcept { return server_; }
  /// Under the worker's lock.
  client_session& session() noexcept { return session_; }
  /// Returns the session, for messages without an answer from objects that outlive the client. It
  /// points to null once the client is gone. Under the worker's lock.
  std::shared_ptr<client_session*> teller() const noexcept { return teller_; }

  void listen();        ///< From now on it hears the server.
  void end() noexcept;  ///< It hears nothing more, and has said goodbye.
  /// Says hello; from then on it is known what the server is. A ticket is part of the hello, so any
  /// server sees it. One that knows no tickets lets the client in as itself: that is a failure.
  request start_greet(clock::time_point deadline,
                      const std::optional<ticket_secret>& ticket = std::nullopt);

  /// Asks all of these that are not done, and waits until they are. `body_of` gives what the
  /// question with a number says.
  template <class BodyOf>
  void ask_each(std::span<question> asked, control_type type, const BodyOf& body_of,
                clock::time_point deadline) {
    const auto send = [&](std::size_t i) { session_.ask(asked[i], type, body_of(i)); };
    ask_all(asked, send, deadline);
  }
  /// Waits for the request that `start` returns. Errors: would_deadlock, before it is started.
  template <class Start>
  result<void> wait_for(const Start& start) {
    if (const auto may = may_wait(); !may) return may.why();
    request started = start_blocking(worker_, start);
    std::error_code ec;
    started.wait(ec);
    if (!ec) return {};
    return failure{ec, started.description(), started.ucx_status()};
  }
  // For calls, under the worker's lock.
  void enter(client_call& begun) noexcept;
  /// It is over: what answers `asked` is of no use to it.
  void leave(client_call& over, question& asked) noexcept;
  /// Has it take its answer in the next round.
  void take_in_round(client_call& answered);
  /// The server has answered.
  void heard() noexcept { heard_at_.store(now(), std::memory_order_relaxed); }
  /// Returns how many bytes a message has for what it is about.
  std::size_t room() const noexcept;

  clock::time_point deadline_after(const io_options& options);
  clock::time_point now() const noexcept;
  /// Asks the server for a sign of life, unless it has answered a moment ago, and waits for it
  /// until the connection counts as dead. Inside a handler, of any worker, it returns at once.
  /// Errors: why the connection was lost; timed_out.
  result<void> hear();
  /// Returns why nothing can be asked; no error while it can.
  std::error_code status() const noexcept;

  void count_request() noexcept { requests_.fetch_add(1, std::memory_order_relaxed); }
  /// Counts those that failed, unless `ask()` has.
  void count_failures(std::uint64_t number) noexcept;
  std::uint64_t requests() const noexcept { return requests_.load(std::memory_order_relaxed); }
  std::uint64_t failures() const noexcept { return failures_.load(std::memory_order_relaxed); }

 private:
  result<void> may_wait() const;
  void take_arrived() noexcept;
  void ask_all(std::span<question> asked, const std::function<void(std::size_t)>& send,
               clock::time_point deadline);

  worker_core& worker_;
  endpoint_core& connection_;
  known_server server_{connection_};
  endpoint_channel channel_{connection_};
  client_session session_;
  std::shared_ptr<client_session*> teller_;
  intrusive_list<client_call, call_tag> calls_;
  intrusive_list<client_call, arrived_call_tag> arrived_;  // their answers are to be taken
  std::atomic<clock::time_point> heard_at_;                // the server's last answer
  std::atomic<std::uint64_t> requests_{0};
  std::atomic<std::uint64_t> failures_{0};
};

}  // namespace ucx::detail
