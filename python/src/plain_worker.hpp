// A worker that a program of Python's drives by calls, for Python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <nanobind/nanobind.h>

#include "closing_connections.hpp"
#include "loop_worker.hpp"
#include "message_worker.hpp"
#include "plain_context.hpp"

namespace ucxio_python {

/// What the connections of one worker share.
struct plain_worker {
  std::shared_ptr<loop_worker> loop;
  closing_connections closing = {};
  std::shared_ptr<message_worker> messages = {};  // where any are sent
};

class plain_endpoint_object;

/// The worker, for Python: `UCXWorker` is made of it.
class plain_worker_object {
 public:
  plain_worker_object(const plain_context_object& of, double connect_timeout);
  plain_worker_object(const plain_worker_object&) = delete;
  plain_worker_object& operator=(const plain_worker_object&) = delete;
  ~plain_worker_object();

  /// Makes rounds of progress while something happens, up to so many. Returns the numbers of the
  /// operations that have ended, and whether anything happened.
  nanobind::tuple progress(std::size_t rounds);
  /// Begin to connect, to a worker or listener of UCX's.
  plain_endpoint_object connect_to(const std::string& host, std::uint16_t port);
  plain_endpoint_object connect_to_worker(nanobind::handle address);
  /// Returns the same worker, for messages between programs with ucxio.
  message_worker_object* messages();
  /// An operation, whose result is None.
  nanobind::object flush();
  void fence();
  nanobind::bytes address() const;
  int event_fd() const;
  bool arm();
  std::uintptr_t native_handle() const;

 private:
  std::shared_ptr<plain_worker> of_;
};

void add_plain_worker(nanobind::module_& module);

}  // namespace ucxio_python
