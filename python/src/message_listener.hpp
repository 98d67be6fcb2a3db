// A listener for peers that send messages, for Python.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <ucx/listener.hpp>
#include <ucx/socket_address.hpp>

#include "message_endpoint.hpp"
#include "message_worker.hpp"

namespace ucxio_python {

/// A listener. It accepts all peers, and the worker's `turn` tells its number when some are there.
class message_listener_object {
 public:
  /// Listens, without the GIL.
  static message_listener_object listen(const std::shared_ptr<message_worker>& over,
                                        const ucx::socket_address& where);
  message_listener_object(message_listener_object&&) noexcept = default;
  message_listener_object& operator=(message_listener_object&&) = delete;
  ~message_listener_object();

  std::uint64_t number() const noexcept { return state_->number; }
  std::string host() const { return state_->address.host(); }
  std::uint16_t port() const { return state_->address.port(); }
  /// Returns the peers whose connections stand, each once.
  nanobind::list take_peers();
  /// Stops listening. Connections that were taken live on, others are closed.
  void close();

 private:
  struct state {
    explicit state(std::shared_ptr<message_worker> of)
        : over(std::move(of)), number(over->loop()->next_number()) {}
    std::shared_ptr<message_worker> over;
    const std::uint64_t number;
    ucx::socket_address address;
    std::mutex lock;
    std::vector<std::shared_ptr<message_connection>> pending;
    std::vector<std::shared_ptr<message_connection>> standing;
    bool is_closed = false;
    std::optional<ucx::listener> listening;

    /// Begins to accept a peer.
    void add(std::shared_ptr<message_connection> made);
    /// Notes how the connection that began as the given one went.
    void decide(const message_connection* made, bool stands);
    /// Drops the peers that were not taken, and all that come.
    void close();
  };
  explicit message_listener_object(std::shared_ptr<state> made) : state_(std::move(made)) {}
  static void accept(const std::shared_ptr<state>& at, ucx::connection_request asked);

  std::shared_ptr<state> state_;
};

void add_message_listener(nanobind::module_& module);

}  // namespace ucxio_python
