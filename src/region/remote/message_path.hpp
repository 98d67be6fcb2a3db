// The way of messages: the owner answers each access, and checks it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <system_error>

#include "base/pool.hpp"
#include "region/paths/transfer_path.hpp"
#include "ucx/access.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {

class region_read;
class region_write;
class remote_region_core;

/// Leads everywhere: to files, over any transport, from and to memory of devices, and to owners
/// that other paths do not reach. Takes every access. Errors of all: feature_disabled (the context
/// was made without feature::am), not_supported (the peer answers no messages).
class message_path final : public transfer_path {
 public:
  explicit message_path(remote_region_core& region);

  ucx::transfer_method method() const noexcept override { return transfer_method::message; }
  /// Errors: not_supported (`verify`, of memory of a device).
  outcome read(std::uint64_t offset, std::span<std::byte> into, const io_options& options,
               std::error_code& ec) override {
    return read(offset, into, options, nullptr, ec);
  }
  outcome write(const std::shared_ptr<write_tracker>& tracker, std::uint64_t offset,
                std::span<const std::byte> from, const io_options& options,
                std::error_code& ec) override {
    return write(tracker, offset, from, options, nullptr, ec);
  }
  bool takes(access) const noexcept override { return true; }

  // As these; `by` moves the bytes, where it can.
  operation* read(std::uint64_t offset, std::span<std::byte> into, const io_options& options,
                  std::unique_ptr<direct_move> by, std::error_code& ec);
  operation* write(const std::shared_ptr<write_tracker>& tracker, std::uint64_t offset,
                   std::span<const std::byte> from, const io_options& options,
                   std::unique_ptr<direct_move> by, std::error_code& ec);
  // From and to a device's memory of the caller's.
  operation* read_into(const device_bytes& into, std::uint64_t offset, const io_options& options,
                       std::unique_ptr<direct_move> by, std::error_code& ec);
  operation* write_from(const std::shared_ptr<write_tracker>& tracker, const device_bytes& from,
                        std::uint64_t offset, const io_options& options,
                        std::unique_ptr<direct_move> by, std::error_code& ec);
  operation* perform(std::uint64_t offset, const atomic_access& wanted,
                     std::span<std::byte> previous, const io_options& options, std::error_code& ec);

 private:
  /// Returns whether it can be asked for at all.
  bool may_begin(std::error_code& ec) const {
    if (!has_messages_) ec = region_.why_no_answers().code;
    return has_messages_;
  }

  remote_region_core& own_;  // which it is a part of
  const bool has_messages_;
  pool<region_read>& reads_;  // the worker's
  pool<region_write>& writes_;
};

}  // namespace ucx::detail
