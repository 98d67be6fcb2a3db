// Memory that this process reads where its owner on the same host has it:
// docs/reference/wire-format.md, "Region descriptor".
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ucp/ucp_api.hpp"
#include "ucx/remote_descriptor.hpp"
#include "wire/cma_record.hpp"

namespace ucx::detail {

/// One copy, by the operating system, for which the owner does nothing. A descriptor is not
/// trusted. Whatever it names, only the reader's own memory is written, and nothing is taken for
/// the region before the record was checked.
class cma_region {
 public:
  /// Tries it on the record alone. Returns nothing where that can not be read, and `why_not` says
  /// why.
  static std::unique_ptr<cma_region> open(ucp_api& api, const remote_descriptor& described,
                                          std::string& why_not);

  /// Reads what is at `offset`, within the call; there is as much. Returns false if that is not the
  /// region, or can not be read any more: then `into` has anything.
  bool read(std::uint64_t offset, std::span<std::byte> into) noexcept {
    return read_from(address_ + offset, into);
  }
  /// Reads what the owner has at `address`, likewise.
  bool read_from(std::uint64_t address, std::span<std::byte> into) noexcept;

 private:
  cma_region(ucp_api& api, const remote_descriptor& described) noexcept;
  bool read_part(std::uint64_t address, std::span<std::byte> into) noexcept;

  ucp_api& api_;
  const cma_handle loan_;
  const std::uint64_t address_;
  const cma_record::content expected_;
};

}  // namespace ucx::detail
