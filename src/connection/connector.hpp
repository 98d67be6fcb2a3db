// Connects to a peer by whatever it is known by, without waiting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "connection/connection_observer.hpp"
#include "os/resolver.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/peer_address.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::detail {

class alarm;
class endpoint_core;
class worker_core;

/// How a peer is known: by exactly one of a host's name, socket addresses, and a worker's address.
struct destination {
  explicit destination(std::vector<socket_address> one_of) : addresses(std::move(one_of)) {}
  explicit destination(named_host name) : host(std::move(name)) {}
  explicit destination(const peer_address& peer);

  std::optional<named_host> host = {};
  std::vector<socket_address> addresses = {};
  worker_address worker = {};
  std::string towards = {};  ///< By TLS: the server that a token is chosen for.
};

/// Returns a host and its port as a URL has them, and a line of the file of tokens.
std::string name_of_port(const named_host& host);

/// Begins to connect, and returns the connection. The text of a failure is UCX's words, if any.
result<std::shared_ptr<endpoint_core>> connect_to(const std::shared_ptr<worker_core>& worker,
                                                  const worker_address& peer,
                                                  endpoint_options options,
                                                  clock::time_point deadline);
/// By TLS the token is that for the server `towards`, "host:port"; where that is empty, that of the
/// context. Errors: also not_secure (a process of another user listens there, and no token is for
/// just that port).
result<std::shared_ptr<endpoint_core>> connect_to(const std::shared_ptr<worker_core>& worker,
                                                  const socket_address& peer,
                                                  endpoint_options options,
                                                  clock::time_point deadline,
                                                  const std::string& towards = {});

/// Returns the options without the handlers, which can not be copied.
endpoint_options without_handlers(const endpoint_options& options);

/// Looks the name up where there is one. Tries the addresses one after the other, each for its
/// share of what is left of the time. Under the worker's lock, but for `start`.
class connector final : public connection_observer, public std::enable_shared_from_this<connector> {
 public:
  /// `on_done` is called under the lock, never before this returns, and not behind `cancel()`; it
  /// throws nothing. Without memory this throws std::bad_alloc, and nothing has begun.
  static std::shared_ptr<connector> start(std::shared_ptr<worker_core> worker, destination to,
                                          const endpoint_options& options,
                                          clock::time_point deadline,
                                          move_only_handler<connector&> on_done);
  connector(std::shared_ptr<worker_core> worker, destination to, const endpoint_options& options,
            clock::time_point deadline, move_only_handler<connector&> on_done);
  ~connector() override;

  bool done() const noexcept { return done_; }
  /// Returns why there is no connection, once done.
  std::error_code failure() const noexcept { return failure_; }
  const std::string& words() const noexcept { return words_; }
  std::optional<int> ucx_status() const noexcept { return ucx_status_; }
  /// Returns the connection, which has been established, and may have been lost since.
  std::shared_ptr<endpoint_core> take() noexcept { return std::move(connection_); }
  /// Gives up: what has begun ends.
  void cancel() noexcept;

  void established(endpoint_core& connection) override;
  void ended(endpoint_core& connection, bool was_established) override;

 private:
  void begin();
  void resolved();
  void try_next();
  void try_next_or_fail() noexcept;
  void try_one(clock::time_point until);
  void give_up(errc why) noexcept;
  void note(std::error_code failure, std::string words,
            std::optional<int> ucx_status = {}) noexcept;
  void finish() noexcept;
  void drop() noexcept;

  std::shared_ptr<worker_core> worker_;
  destination to_;
  endpoint_options options_;
  clock::time_point deadline_;
  move_only_handler<connector&> on_done_;
  std::unique_ptr<lookup> lookup_;
  std::unique_ptr<alarm> alarm_;
  std::size_t next_ = 0;  // of the addresses
  std::shared_ptr<endpoint_core> connection_;
  bool done_ = false;
  std::error_code failure_;
  std::string words_;
  std::optional<int> ucx_status_;
};

}  // namespace ucx::detail
