// Reads one message out of the sender's memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "message/byte_runs.hpp"
#include "ucp/ucp_api.hpp"
#include "wire/cma_offer.hpp"

namespace ucx::detail {

/// By the operating system's copy between processes: one copy, for which the sender does nothing. A
/// part counts if the sender's record was found behind it: then it was the message's all along. A
/// sender's offer is not trusted. Whatever it names, only the receive's own memory is written, and
/// nothing is taken for the message before the record was checked.
class cma_read {
 public:
  enum class outcome { more, whole, failed };

  /// Of the message that `announced` announces.
  void begin(const cma_offer& offer, const parcel& announced) noexcept;
  /// Whether the process that the offer names can be read here, and whether it is the sender. The
  /// sender has a record of the session, though of another message by now, maybe.
  enum class sender { found, not_found, unreadable };
  sender look_for_sender(ucp_api& api) const noexcept;
  /// Reads the next `most` bytes at most. A failure leaves `into` with anything.
  outcome read(ucp_api& api, const byte_runs<std::byte>& into, std::size_t most) noexcept;

 private:
  bool read_part(ucp_api& api, const byte_runs<std::byte>& into, std::uint64_t end) noexcept;

  cma_offer offer_;
  cma_record::content expected_;
  std::uint64_t length_ = 0;
  std::uint64_t read_ = 0;
};

}  // namespace ucx::detail
