// The region of a path, as the path knows it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <system_error>

#include "base/result.hpp"
#include "ucx/remote_descriptor.hpp"
#include "ucx/request.hpp"

namespace ucx::detail {

class direct_move;
class endpoint_core;
class operation;
class write_tracker;

/// Under the worker's lock, but for what never changes.
class peer_region {
 public:
  peer_region(const peer_region&) = delete;
  peer_region& operator=(const peer_region&) = delete;

  endpoint_core& endpoint() const noexcept { return endpoint_; }
  const remote_descriptor& descriptor() const noexcept { return descriptor_; }
  /// Returns which region it is, and whose, for people.
  std::string description() const;

  /// Returns whether its owner answers messages about it.
  bool has_answers() const noexcept;
  /// Returns why it does not.
  failure why_no_answers() const;

  /// Returns a share of it, for an operation.
  virtual std::shared_ptr<peer_region> share() = 0;
  // An access that goes by message where `by` can not move the bytes. Each returns the operation,
  // or nullptr where it ended within the call, and `ec` says how.
  virtual operation* start_read_by(std::unique_ptr<direct_move> by, std::uint64_t offset,
                                   std::span<std::byte> into, const io_options& options,
                                   std::error_code& ec) = 0;
  virtual operation* start_write_by(std::unique_ptr<direct_move> by,
                                    const std::shared_ptr<write_tracker>& tracker,
                                    std::uint64_t offset, std::span<const std::byte> from,
                                    const io_options& options, std::error_code& ec) = 0;

 protected:
  peer_region(endpoint_core& endpoint, const remote_descriptor& descriptor)
      : endpoint_(endpoint), descriptor_(descriptor) {}
  ~peer_region() = default;

  endpoint_core& endpoint_;
  const remote_descriptor descriptor_;
};

}  // namespace ucx::detail
