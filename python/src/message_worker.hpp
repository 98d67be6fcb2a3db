// A worker for messages that an event loop of Python's drives: ucxio.ucp is made of it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <ucx/context.hpp>
#include <ucx/endpoint.hpp>
#include <ucx/message.hpp>

#include "closing_connections.hpp"
#include "connection_news.hpp"
#include "loop_worker.hpp"

namespace ucxio_python {

/// The number of active messages.
ucx::message_name active_message_name() noexcept;

/// What the connections and listeners of one worker share.
class message_worker {
 public:
  message_worker(std::shared_ptr<loop_worker> loop, ucx::context of);

  ucx::worker& worker() noexcept { return loop_->worker(); }
  const ucx::context& context() const noexcept { return context_; }
  const std::shared_ptr<loop_worker>& loop() const noexcept { return loop_; }
  message_inbox& inbox() noexcept { return *inbox_; }

  /// Closes a connection that the program dropped, without waiting.
  void close_later(ucx::endpoint gone) noexcept;
  /// Waits until what was sent is out, and the dropped connections are closed, `limit` at most.
  void settle(std::chrono::nanoseconds limit) noexcept;

 private:
  std::shared_ptr<loop_worker> loop_;
  ucx::context context_;
  std::shared_ptr<message_inbox> inbox_ = std::make_shared<message_inbox>();
  closing_connections closing_;
};

class message_endpoint_object;
class message_listener_object;

/// The worker, for Python.
class message_worker_object : public loop_worker_object {
 public:
  /// Makes a context and a worker, without the GIL.
  message_worker_object(const std::map<std::string, std::string>& configuration,
                        bool environment_wins, double connect_timeout, double peer_timeout,
                        double close_timeout);
  explicit message_worker_object(std::shared_ptr<message_worker> made);
  ~message_worker_object();

  message_listener_object listen(const std::string& host, std::uint16_t port);
  /// Begins to connect. The connection's news tell how that goes.
  message_endpoint_object connect_to(const std::string& host, std::uint16_t port);
  message_endpoint_object connect_to_worker(nanobind::handle address, bool watched);
  /// Receives a message of any peer: an operation, whose result is the lengths of message and
  /// buffer.
  nanobind::object receive(nanobind::handle buffer, std::uint64_t tag);
  nanobind::object receive_parts(std::uint64_t tag);
  bool probe(std::uint64_t tag) const;
  nanobind::object flush();
  void fence();
  void settle(double limit);

  nanobind::bytes address() const;
  std::vector<std::pair<std::string, std::string>> configuration() const;
  std::vector<std::string> transports() const;
  std::string description() const;
  bool supports_cuda() const;
  std::uintptr_t native_handle() const;

 private:
  std::shared_ptr<message_worker> of_;
};

void add_message_worker(nanobind::module_& module);

}  // namespace ucxio_python
