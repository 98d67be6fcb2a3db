// Memory that its owner's host may read where it lies: docs/wire-format.md, "Region descriptor".
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

#include "detail/ucp_api.hpp"
#include "ucx/remote_descriptor.hpp"

namespace ucx::detail {

/// In the owner's memory, as long as the region may be read: whoever finds it unchanged behind what
/// he read has read the region.
struct alignas(32) region_record {
  /// What a reader finds, and compares.
  struct content {
    std::uint64_t token = 0;
    std::uint64_t incarnation = 0;
    std::uint64_t region = 0;
    std::uint64_t size = 0;
    friend bool operator==(const content&, const content&) = default;
  };

  /// Lends the region that `described` is about, under a token that nobody can foresee.
  explicit region_record(const remote_descriptor& described);
  region_record(const region_record&) = delete;
  region_record& operator=(const region_record&) = delete;
  /// Ends it.
  ~region_record() { end(); }
  /// From here on nobody takes what he reads for the region.
  void end() noexcept;
  /// Returns where it is.
  memory_loan location() const noexcept;

 private:
  std::atomic<std::uint64_t> token_;
  [[maybe_unused]] const std::uint64_t incarnation_;  // these are read by others
  [[maybe_unused]] const std::uint64_t region_;
  [[maybe_unused]] const std::uint64_t size_;
};
// Its bytes are read as those of a `content`.
static_assert(sizeof(region_record) == sizeof(region_record::content));
static_assert(std::is_standard_layout_v<region_record>);

/// The reader's side. One copy, by the operating system, for which the owner does nothing. What a
/// descriptor says is not believed: whatever it names, only the reader's own memory is written, and
/// nothing is taken for the region before the record was seen.
class borrowed_region {
 public:
  /// Tries it on the record alone. Returns nothing where that can not be read, and `why_not` says
  /// why.
  static std::unique_ptr<borrowed_region> open(ucp_api& api, const remote_descriptor& described,
                                               std::string& why_not);

  /// Reads what is at `offset`, within the call; there is as much. Returns false if that is not the
  /// region, or can not be read any more: then `into` has anything.
  bool read(std::uint64_t offset, std::span<std::byte> into) noexcept;

 private:
  borrowed_region(ucp_api& api, const remote_descriptor& described) noexcept;
  bool read_part(std::uint64_t address, std::span<std::byte> into) noexcept;

  ucp_api& api_;
  const memory_loan loan_;
  const std::uint64_t address_;
  const region_record::content expected_;
};

}  // namespace ucx::detail
