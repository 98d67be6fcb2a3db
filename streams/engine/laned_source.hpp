// A source whose bytes come over several connections.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "engine/byte_source.hpp"

namespace ucx::detail {

/// Each read goes whole over the lane that has the fewest bytes under way. Everything else is asked
/// of the source that was opened first. That also reads what the lanes do not reach: what was added
/// to a file since they were opened. A lane that is lost is the source's loss. Writes take the
/// first source, because writes of two connections have no order. A write that was given up on one
/// could arrive behind its replacement on another.
class laned_source final : public byte_source {
 public:
  /// REQUIRES: more than one lane, each of the content and the size that `first` has. Nothing is in
  /// place, and nothing grows when it is written.
  laned_source(std::unique_ptr<byte_source> first, std::vector<std::unique_ptr<byte_source>> lanes);
  /// Closes all of them at the same time, `first` on the calling thread.
  /// REQUIRES: each lane may be used by any thread.
  ~laned_source() override;
  laned_source(const laned_source&) = delete;
  laned_source& operator=(const laned_source&) = delete;

  std::uint64_t size() const noexcept override { return first_->size(); }
  bool can_be_measured() const noexcept override { return first_->can_be_measured(); }
  std::uint64_t measure(std::uint64_t known, std::chrono::nanoseconds wait) override {
    return first_->measure(known, wait);
  }
  content_id content() const noexcept override { return first_->content(); }
  std::string description() const override { return first_->description(); }
  std::chrono::steady_clock::time_point now() const noexcept override { return first_->now(); }
  std::size_t lanes() const noexcept override { return lanes_.size(); }

  request start_read_at(std::uint64_t offset, std::span<std::byte> into) override;
  request start_write_at(std::uint64_t offset, std::span<const std::byte> from) override {
    return first_->start_write_at(offset, from);
  }
  request start_flush() override { return first_->start_flush(); }
  std::optional<std::uint64_t> first_unconfirmed() const override {
    return first_->first_unconfirmed();
  }
  void forget_writes(std::uint64_t missing) override { first_->forget_writes(missing); }
  bool abandons_reads_at_once() const noexcept override;
  std::error_code status() const noexcept override;

 private:
  struct lane {
    std::unique_ptr<byte_source> source;
    /// Bytes under way; counted down on the lane's own thread, maybe when this is gone.
    std::shared_ptr<std::atomic<std::size_t>> outstanding;
    std::thread closing = {};
  };
  lane* choose(std::uint64_t end) noexcept;

  std::unique_ptr<byte_source> first_;
  std::vector<lane> lanes_;
  std::size_t turn_ = 0;  // where the choice among equals begins
};

}  // namespace ucx::detail
