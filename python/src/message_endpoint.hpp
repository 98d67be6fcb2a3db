// A connection for messages, for Python.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <ucx/endpoint.hpp>
#include <ucx/listener.hpp>
#include <ucx/message.hpp>
#include <ucx/receive_target.hpp>

#include "connection_news.hpp"
#include "message_worker.hpp"

namespace ucxio_python {

/// A connection, and its news. The last to have it closes it, without waiting.
class message_connection {
 public:
  explicit message_connection(std::shared_ptr<message_worker> over);
  message_connection(const message_connection&) = delete;
  message_connection& operator=(const message_connection&) = delete;
  ~message_connection();

  /// Begins to connect.
  static std::shared_ptr<message_connection> connect(const std::shared_ptr<message_worker>& over,
                                                     const ucx::peer_address& to,
                                                     ucx::endpoint_options options);
  /// Accepts a peer. `on_decision` is called once, with whether the connection stands, from a
  /// handler.
  static std::shared_ptr<message_connection> accept(const std::shared_ptr<message_worker>& over,
                                                    ucx::connection_request&& asked,
                                                    std::function<void(bool)> on_decision);

  ucx::endpoint& peer() noexcept { return *peer_; }
  connection_news& news() noexcept { return *news_; }
  const std::shared_ptr<message_worker>& over() const noexcept { return over_; }

 private:
  ucx::connection_events events(std::function<void(bool)> on_decision);
  void hold(ucx::endpoint peer);

  std::shared_ptr<message_worker> over_;
  std::shared_ptr<connection_news> news_;
  std::optional<ucx::endpoint> peer_;
};

/// Begins to receive a message of several parts, by a call that has the place for them. The result
/// is a list of memoryviews.
nanobind::object begin_receive_parts(const std::shared_ptr<loop_worker>& loop,
                                     std::function<ucx::request(const ucx::receive_target&)> start);

/// The connection, for Python.
class message_endpoint_object {
 public:
  explicit message_endpoint_object(std::shared_ptr<message_connection> of) : of_(std::move(of)) {}
  message_endpoint_object(message_endpoint_object&&) noexcept = default;
  message_endpoint_object& operator=(message_endpoint_object&&) = delete;
  ~message_endpoint_object();

  // Operations.
  nanobind::object send(nanobind::handle buffer, std::uint64_t tag);
  nanobind::object send_active(nanobind::handle buffer);
  nanobind::object send_parts(nanobind::handle buffers, std::uint64_t tag);
  /// Takes a message whose tag equals `tag` in the bits of `mask`. The result is the lengths of
  /// message and buffer.
  nanobind::object receive(nanobind::handle buffer, std::uint64_t tag, std::uint64_t mask);
  /// Likewise, of any length. The result is a memoryview of the message, and its tag.
  nanobind::object receive_whole(std::uint64_t tag, std::uint64_t mask);
  /// The result is a list of memoryviews.
  nanobind::object receive_parts(std::uint64_t tag);
  nanobind::object stream_send(nanobind::handle buffer);
  /// Fills the buffer.
  nanobind::object stream_receive(nanobind::handle buffer);
  nanobind::object flush();
  nanobind::object close();

  void abort();
  bool probe(std::uint64_t tag) const;
  bool has_active() const;
  /// Takes the oldest active message; None where there is none.
  nanobind::object take_active();

  std::uint64_t number() const noexcept { return of_->news().number(); }
  std::uint64_t id() const noexcept { return of_->peer().id(); }
  std::string state() const;
  /// Returns why the connection ended, as an exception; None where it did not.
  nanobind::object failure() const;
  std::string peer_address() const;
  std::vector<std::string> transports() const;
  std::uintptr_t native_handle() const;

 private:
  std::shared_ptr<message_connection> of_;
};

void add_message_endpoint(nanobind::module_& module);

}  // namespace ucxio_python
