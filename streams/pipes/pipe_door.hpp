// Where an end of a pipe lets others in: at a socket, or, without an IP address, at its worker.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include "ucx/endpoint.hpp"
#include "ucx/listener.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/socket_address.hpp"
#include "ucx/worker.hpp"

namespace ucx::detail {

/// Lets in every peer that knocks, whichever it is.
class pipe_door {
 public:
  /// So many who have not said who they are may be connected at a time.
  static constexpr std::size_t most_strangers = pipe_options::max_peers + 16;

  /// Listens where `place` is. Where that is empty others connect to the worker's address, and say
  /// so by a message (`pipe_knock_number`). Lifetime: `driven`, which has its own thread, until
  /// this is gone. Errors: those of `listener`.
  pipe_door(worker& driven, const socket_address& place);
  ~pipe_door();
  pipe_door(const pipe_door&) = delete;
  pipe_door& operator=(const pipe_door&) = delete;

  /// Returns where it listens; empty where others connect to the worker's address.
  std::string address() const;

  /// Waits for the next peer that knocks, `limit` at most. Returns nothing where none came, and
  /// where it has gone. Errors: those of `listener::acceptance`, but for timed_out.
  std::optional<endpoint> wait(std::chrono::nanoseconds limit, std::error_code& ec);

  /// Ends a connection that came in. Nothing is waited for: the peer may not answer.
  static void turn_away(endpoint& came) noexcept;

 private:
  struct knocks;
  std::optional<endpoint> accept(std::chrono::nanoseconds limit, std::error_code& ec);

  worker& driven_;
  std::optional<listener> listening_;
  std::shared_ptr<knocks> knocks_;
};

}  // namespace ucx::detail
