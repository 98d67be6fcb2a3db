// A peer's region as the source of a stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <system_error>

#include "byte_source.hpp"
#include "ucx/remote_region.hpp"

namespace ucx::detail {

/// Holds a handle of its own, so that its flushes cover the stream's writes and nobody else's.
class region_source final : public byte_source {
 public:
  explicit region_source(const remote_region& region) : region_(region.share()) {}

  std::uint64_t size() const noexcept override { return region_.size(); }
  request start_read_at(std::uint64_t offset, std::span<std::byte> into) override;
  request start_write_at(std::uint64_t offset, std::span<const std::byte> from) override;
  request start_flush() override;
  bool abandons_reads_at_once() const noexcept override;
  std::optional<std::uint64_t> first_unconfirmed() const override;
  void forget_writes() override;
  std::error_code status() const noexcept override { return region_.status(); }
  std::string description() const override { return region_.description(); }

 private:
  remote_region region_;
};

}  // namespace ucx::detail
