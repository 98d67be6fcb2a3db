// Where an end of a pipe lets others in: at a socket, or, without an IP address, at its worker.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "pipes/pipe_path.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/listener.hpp"
#include "ucx/meeting_keys.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/socket_address.hpp"
#include "ucx/worker.hpp"

namespace ucx::detail {

/// Lets in every peer that knocks, whichever it is.
class pipe_door {
 public:
  /// So many who have not said who they are may be connected at a time.
  static constexpr std::size_t most_strangers = pipe_options::max_peers + 16;

  /// Listens where `place` is; by TLS to those alone who have one of `keys`. Where that is empty
  /// others connect to the worker's address, and say so by a message (`pipe_knock_number`).
  /// Lifetime: `driven`, until this is gone. Errors: those of `listener`.
  pipe_door(worker& driven, const socket_address& place, const meeting_keys& keys);
  ~pipe_door();
  pipe_door(const pipe_door&) = delete;
  pipe_door& operator=(const pipe_door&) = delete;

  /// Returns where it listens; empty where others connect to the worker's address.
  std::string address() const;

  /// Returns the next peer that knocked; nothing where there is none.
  std::optional<endpoint> take();
  /// Returns what ends when somebody knocks, or has knocked since the last `take()`.
  pipe_request& knock();

  /// Ends a connection that came in. Nothing is waited for: the peer may not answer.
  static void turn_away(endpoint& came) noexcept;

 private:
  struct knocks;

  worker& driven_;
  std::optional<listener> listening_;
  std::shared_ptr<knocks> knocks_;
  pipe_request knock_;
};

}  // namespace ucx::detail
