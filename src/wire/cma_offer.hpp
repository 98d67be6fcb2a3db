// A message that its receiver reads out of the sender's memory: docs/reference/wire-format.md,
// "Loans".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "wire/cma_record.hpp"
#include "wire/parcel.hpp"

namespace ucx::detail {

/// Where a message lies, as its announcement says.
struct cma_offer {
  static constexpr std::size_t size = 32;

  std::uint64_t process = 0;  ///< The sender's id, as it sees itself.
  std::uint64_t address = 0;  ///< Of the message.
  std::uint64_t record = 0;   ///< Of the sender's `cma_record`.
  std::uint64_t token = 0;    ///< Of that record: another one for each message; never 0.

  void encode(std::span<std::byte, size> into) const noexcept;
};

/// Reads an offer; nothing where it makes no sense.
std::optional<cma_offer> decode_offer(std::span<const std::byte> wire) noexcept;

/// Returns what a sender's record says of the message that `said` announces.
inline cma_record::subject subject_of(const parcel& said) noexcept {
  return {said.session, said.number, said.length};
}

}  // namespace ucx::detail
