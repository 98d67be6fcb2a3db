// An active message that has come, and was not received yet, for Python.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <nanobind/nanobind.h>
#include <ucx/message.hpp>

#include "message_endpoint.hpp"

namespace ucxio_python {

/// A message, and the connection that it came by. Where it goes unreceived, it is refused.
class active_message_object {
 public:
  active_message_object(ucx::message came, std::shared_ptr<message_connection> by)
      : by_(std::move(by)), came_(std::make_shared<ucx::message>(std::move(came))) {}
  active_message_object(active_message_object&&) noexcept = default;
  active_message_object& operator=(active_message_object&&) = delete;
  ~active_message_object();

  std::uint64_t length() const noexcept { return came_->length(); }
  /// Returns whether the sender's memory was a CUDA device's.
  bool is_of_device() const noexcept;
  /// An operation, whose result is None.
  nanobind::object receive(nanobind::handle buffer);

 private:
  std::shared_ptr<message_connection> by_;
  std::shared_ptr<ucx::message> came_;
};

void add_active_message(nanobind::module_& module);

}  // namespace ucxio_python
