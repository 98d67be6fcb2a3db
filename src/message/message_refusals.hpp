// Tells that a peer has no handler for messages of a number.
#pragma once

#include <cstdint>

namespace ucx::detail {

class endpoint_core;

/// For messages of the library's own, whose senders can not ask for an acknowledgement of each.
class message_refusals {
 public:
  message_refusals() = default;
  message_refusals(const message_refusals&) = delete;
  message_refusals& operator=(const message_refusals&) = delete;
  virtual ~message_refusals() = default;

  /// The peer has no handler for the message of this number, which came whole.
  virtual void refused(endpoint_core& by, std::uint64_t message) noexcept = 0;
};

/// A part of the worker: the one such listener, of messages to handlers of `number`.
struct refused_messages {
  std::uint64_t number = 0;
  message_refusals* told = nullptr;
};

}  // namespace ucx::detail
