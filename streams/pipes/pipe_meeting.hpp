// How the ends of a pipe find each other by URL: at the broker of a server.
#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "pipes/pipe_door.hpp"
#include "pipes/pipe_introduction.hpp"
#include "pipes/pipe_path.hpp"
#include "ucx/error.hpp"
#include "ucx/meeting_keys.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/url.hpp"

namespace ucx::detail {

/// Returns how long connecting to the server may take.
std::chrono::nanoseconds time_for_the_server(const pipe_options& options) noexcept;

/// Asks the server of a URL for the other ends of that name, as many as the options want. Connects
/// to them, or lets them in. Goes on while it is asked to, and throws `ucx::error` where they do
/// not come in time. The path has the connections.
class pipe_meeting {
 public:
  /// Connects to the server, over a new worker, which has a thread.
  pipe_meeting(const url& where, pipe_role role, const pipe_options& options);
  /// Begins to connect over `driven`, and wakes `told` when it can go on. Lifetime: `driven`, until
  /// the path is gone.
  pipe_meeting(worker& driven, const std::weak_ptr<pipe_woken>& told, const url& where,
               pipe_role role, const pipe_options& options);
  ~pipe_meeting();
  pipe_meeting(const pipe_meeting&) = delete;
  pipe_meeting& operator=(const pipe_meeting&) = delete;

  /// Does what can be done without waiting; returns whether all are there.
  bool advance();
  /// Waits until it may go on, or has `told` woken then. Returns whether it may.
  bool wait();
  /// Returns the path to those who came.    REQUIRES: all are there.
  std::unique_ptr<pipe_path> take();
  /// Returns the client of the server, which is not needed any more. Its end may wait.
  /// REQUIRES: no call waits.
  client leave_server() noexcept;

 private:
  using clock = std::chrono::steady_clock;
  struct expectation {
    pipe_token token;
    clock::time_point until;
  };
  struct caller {
    endpoint peer;
    clock::time_point until;
  };
  /// Somebody to whom this side connects.
  struct called {
    endpoint peer;
    pipe_answer found = {};
    std::string to = {};  // in words
    bool is_told = true;  // that this side is there: by the connection, or by a message
    std::chrono::milliseconds pause = {};
    clock::time_point again = {};  // when it may be called again
    clock::time_point until = {};  // how long it may
    pipe_request telling = {};
  };

  pipe_meeting(const url& where, pipe_role role, const pipe_options& options, bool in_call);
  void begin();
  bool has_ip() const noexcept { return where_.address_file().empty(); }
  worker_address own_address() const;
  void hear();
  void ask();
  void check_asked();
  void take_answers();
  bool is_of_older(const pipe_answer& heard);
  void connect(const pipe_answer& found);
  endpoint call(const pipe_answer& found, std::error_code& ec);
  bool waits_for_key(called& one, std::error_code ended);
  void look_after_called();
  std::optional<std::error_code> outcome_of(called& one);
  void let_in();
  void match();
  void check_time();
  void miss(std::error_code ec, const std::string& text);
  [[noreturn]] void fail(std::error_code ec, const std::string& text) const;
  std::string other() const;
  std::size_t accounted_for() const noexcept {
    return path_->peers.size() + expected_.size() + called_.size();
  }
  std::chrono::nanoseconds left() const;

  const url where_;
  const pipe_role role_;
  const std::size_t wanted_;
  std::size_t unasked_;
  std::unique_ptr<pipe_path> path_;
  pipe_path* taken_ = nullptr;
  const clock::time_point end_;
  std::optional<pipe_waiter> waiter_;
  pipe_request connecting_;  // to the server
  std::optional<endpoint> broker_;
  std::optional<meeting_keys> keys_;
  std::optional<pipe_door> door_;
  pipe_question question_;
  bool asked_ = true;  // its outcome is known
  pipe_request asking_;
  std::shared_ptr<std::vector<std::byte>> answer_bytes_;
  pipe_request answer_;
  std::size_t missed_ = 0;
  std::error_code last_;
  std::string last_text_;
  std::vector<expectation> expected_;  // were introduced, and did not connect yet
  std::list<called> called_;
  std::list<caller> knocked_;  // connected, and may be anybody
  std::chrono::nanoseconds next_look_;
  std::vector<pipe_request*> awaited_;
};

/// Meets in a call. Fails where they do not come in time.
path_or_error meet(const url& where, pipe_role role, const pipe_options& options);

}  // namespace ucx::detail
