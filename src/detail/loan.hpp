// A message that its receiver reads out of its sender's memory: docs/wire-format.md, "Loans".
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

#include "detail/parcel.hpp"

namespace ucx::detail {

/// Where a message lies, in the words of its announcement.
struct loan_offer {
  static constexpr std::size_t size = 32;

  std::uint64_t process = 0;  ///< The sender's id, as it sees itself.
  std::uint64_t address = 0;  ///< Of the message.
  std::uint64_t record = 0;   ///< Of the sender's `loan_record`.
  std::uint64_t token = 0;    ///< Of that record: another one for each message; never 0.

  void encode(std::span<std::byte, size> into) const noexcept;
};

/// Reads an offer; nothing where it makes no sense.
std::optional<loan_offer> decode_offer(std::span<const std::byte> wire) noexcept;

/// In the sender's memory, as long as the message may be read there: whoever finds it unchanged
/// behind what he read has read the message.
struct alignas(32) loan_record {
  /// What a reader finds, and compares.
  struct content {
    std::uint64_t token = 0;
    std::uint64_t session = 0;
    std::uint64_t number = 0;
    std::uint64_t length = 0;
    friend bool operator==(const content&, const content&) = default;
  };

  /// Lends the message that `said` announces.
  void begin(std::uint64_t token, const parcel& said) noexcept;
  /// From here on nobody takes what he reads for the message.
  void end() noexcept;
  bool lends() const noexcept { return token_.load(std::memory_order_relaxed) != 0; }

 private:
  std::atomic<std::uint64_t> token_{0};
  std::uint64_t session_ = 0;
  std::uint64_t number_ = 0;
  std::uint64_t length_ = 0;
};
// Its bytes are read as those of a `content`.
static_assert(sizeof(loan_record) == sizeof(loan_record::content));
static_assert(std::is_standard_layout_v<loan_record>);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace ucx::detail
