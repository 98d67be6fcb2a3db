// The reading of one message out of its sender's memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "detail/byte_runs.hpp"
#include "detail/loan.hpp"
#include "detail/ucp_api.hpp"

namespace ucx::detail {

/// By the operating system's copy between processes: one copy, for which the sender does nothing.
/// A part counts if the sender's record was found behind it: then it was the message's all along.
/// What a sender offers is not believed: whatever it names, only the receive's own memory is
/// written, and nothing is taken for the message before the record was seen.
class borrowing {
 public:
  enum class outcome { more, whole, failed };

  /// Of the message that `announced` announces.
  void begin(const loan_offer& offer, const parcel& announced) noexcept;
  /// Returns whether that sender's memory can be read here, and has the record.
  bool finds_record(ucp_api& api) const noexcept;
  /// Reads the next `most` bytes at most. A failure leaves `into` with anything.
  outcome read(ucp_api& api, const byte_runs<std::byte>& into, std::size_t most) noexcept;

 private:
  loan_offer offer_;
  loan_record::content expected_;
  std::size_t read_ = 0;
};

}  // namespace ucx::detail
