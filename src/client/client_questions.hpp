// The questions of a client to its server.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "client/client_session.hpp"
#include "client/known_server.hpp"
#include "connection/endpoint_channel.hpp"
#include "ucx/request.hpp"
#include "wire/control_message.hpp"

namespace ucx::detail {

class endpoint_core;
class worker_core;

/// Puts questions into words of the protocol, and waits for their answers until a deadline; counts
/// both. The callers take the answers apart. A part of a client; safe from any thread unless a
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
  /// Says hello; from then on it is known what the server is.
  result<void> greet(clock::time_point deadline);

  /// Asks, and waits until the answer is there; returns the whole message. `doing` is what the
  /// text of a failure begins with.
  template <class Body>
  result<std::vector<std::byte>> ask(control_type type, control_type answer_type, const Body& body,
                                     clock::time_point deadline, const std::string& doing) {
    return await(answer_type, deadline, doing,
                 [&](question& asked) { session_.ask(asked, type, body); });
  }
  /// Asks all of these that are not done, and waits until they are. `body_of` gives what the
  /// question with a number says.
  template <class BodyOf>
  void ask_each(std::span<question> asked, control_type type, const BodyOf& body_of,
                clock::time_point deadline) {
    const auto send = [&](std::size_t i) { session_.ask(asked[i], type, body_of(i)); };
    ask_all(asked, send, deadline);
  }
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

  /// Counts those that failed, unless `ask()` has.
  void count_failures(std::uint64_t number) noexcept;
  std::uint64_t requests() const noexcept { return requests_.load(std::memory_order_relaxed); }
  std::uint64_t failures() const noexcept { return failures_.load(std::memory_order_relaxed); }

 private:
  result<std::vector<std::byte>> await(control_type answer_type, clock::time_point deadline,
                                       const std::string& doing,
                                       const std::function<void(question&)>& send);
  void ask_all(std::span<question> asked, const std::function<void(std::size_t)>& send,
               clock::time_point deadline);

  worker_core& worker_;
  endpoint_core& connection_;
  known_server server_{connection_};
  endpoint_channel channel_{connection_};
  client_session session_;
  std::shared_ptr<client_session*> teller_;
  std::atomic<clock::time_point> heard_at_;  // the server's last answer
  std::atomic<std::uint64_t> requests_{0};
  std::atomic<std::uint64_t> failures_{0};
};

}  // namespace ucx::detail
