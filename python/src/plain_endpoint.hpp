// A connection to a program that is reached by UCX alone, for Python.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <ucx/endpoint.hpp>
#include <ucx/endpoint_options.hpp>
#include <ucx/peer_address.hpp>

#include "plain_worker.hpp"

namespace ucxio_python {

/// A connection. The last to have it closes it, without waiting.
class plain_connection {
 public:
  plain_connection(std::shared_ptr<plain_worker> over, const ucx::peer_address& to,
                   ucx::endpoint_options options);
  plain_connection(const plain_connection&) = delete;
  plain_connection& operator=(const plain_connection&) = delete;
  ~plain_connection();

  ucx::endpoint& peer() noexcept { return *peer_; }
  const std::shared_ptr<loop_worker>& loop() const noexcept { return over_->loop; }

 private:
  std::shared_ptr<plain_worker> over_;
  std::optional<ucx::endpoint> peer_;
};

class keyed_region_object;

/// The connection, for Python: `UCXEndpoint` is made of it.
class plain_endpoint_object {
 public:
  /// Begins to connect, without the GIL.
  static plain_endpoint_object connect(std::shared_ptr<plain_worker> over,
                                       const ucx::peer_address& to, ucx::endpoint_options options);
  plain_endpoint_object(plain_endpoint_object&&) noexcept = default;
  plain_endpoint_object& operator=(plain_endpoint_object&&) = delete;
  ~plain_endpoint_object();

  /// Waits for the connection, and opens memory of the peer by UCX's key.
  keyed_region_object open(std::uint64_t address, std::uint64_t size, nanobind::handle key);
  /// An operation, whose result is None.
  nanobind::object flush();
  /// Closes the connection, and waits for that.
  void close();

  std::string state() const;
  /// Returns why the connection ended, as an exception; None where it did not.
  nanobind::object failure() const;
  std::vector<std::string> transports() const;
  std::uintptr_t native_handle() const;

 private:
  explicit plain_endpoint_object(std::shared_ptr<plain_connection> of) : of_(std::move(of)) {}

  std::shared_ptr<plain_connection> of_;
};

void add_plain_endpoint(nanobind::module_& module);

}  // namespace ucxio_python
