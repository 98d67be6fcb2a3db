// Memory of another program that is reached by UCX's key, for Python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <nanobind/nanobind.h>
#include <ucx/remote_descriptor.hpp>
#include <ucx/remote_region.hpp>

#include "plain_endpoint.hpp"

namespace ucxio_python {

/// The memory, for Python: `RemoteMemory` and `UCXIO` are made of it. The peer is trusted.
class keyed_region_object {
 public:
  /// REQUIRES: the connection stands.
  keyed_region_object(std::shared_ptr<plain_connection> over,
                      const ucx::remote_descriptor& described);
  keyed_region_object(keyed_region_object&&) noexcept = default;
  keyed_region_object& operator=(keyed_region_object&&) = delete;
  ~keyed_region_object();

  /// Begin to read into, or write from, the first bytes of a buffer: operations, whose result is
  /// None.
  nanobind::object get(nanobind::handle buffer, std::uint64_t offset, std::size_t size);
  nanobind::object put(nanobind::handle buffer, std::uint64_t offset, std::size_t size);
  /// Read, or write, up to the memory's end, and wait. What was written is at the peer. Return how
  /// many bytes. The time-out is that of the whole call.
  std::size_t read_into(nanobind::handle buffer, std::uint64_t offset, double timeout);
  std::size_t write_from(nanobind::handle buffer, std::uint64_t offset, double timeout);
  std::string transfer_method() const;

 private:
  std::shared_ptr<plain_connection> over_;
  std::shared_ptr<ucx::remote_region> region_;
};

void add_keyed_region(nanobind::module_& module);

}  // namespace ucxio_python
