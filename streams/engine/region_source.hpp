// A peer's region as the source of a stream.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "engine/byte_source.hpp"
#include "ucx/client.hpp"
#include "ucx/content_digest.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"

namespace ucx::detail {

/// Holds a separate handle, so that its flushes cover the stream's writes alone.
class region_source final : public byte_source {
 public:
  explicit region_source(const remote_region& region, const io_options& each = {})
      : region_(region.share()), each_(each) {}
  /// Keeps the client too: what was opened through it counts as its use, and a file that grows is
  /// committed through it.
  /// `unnamed`: it has no name before.
  region_source(remote_region&& region, client&& through, const io_options& each = {},
                bool unnamed = false)
      : client_(std::move(through)),
        region_(std::move(region)),
        each_(each),
        commits_(region_.max_size() > region_.size()),
        unnamed_(unnamed && commits_) {}

  std::uint64_t size() const noexcept override { return region_.size(); }
  std::uint64_t limit() const noexcept override { return region_.max_size(); }
  void commit() override {
    if (commits_) client_->commit(region_, {.close = true}, each_);
  }
  bool can_be_measured() const noexcept override { return client_ && region_.can_refresh_size(); }
  std::uint64_t measure(std::uint64_t known, std::chrono::nanoseconds wait) override {
    return client_->refresh_size(region_, known, wait, each_).size;
  }
  content_id content() const noexcept override { return region_.content(); }
  bool is_unnamed() const noexcept override { return unnamed_; }
  request start_read_at(std::uint64_t offset, std::span<std::byte> into) override;
  request start_read_kept(std::uint64_t offset, std::span<std::byte> into,
                          const std::shared_ptr<const void>& keeper) override;
  request start_write_at(std::uint64_t offset, std::span<const std::byte> from) override;
  request start_flush() override;
  bool in_place() const noexcept override;
  std::span<const std::byte> view(std::uint64_t offset, std::size_t length) const override;
  bool abandons_reads_at_once() const noexcept override;
  std::optional<std::uint64_t> first_unconfirmed() const override;
  void forget_writes(std::uint64_t missing) override;
  std::chrono::steady_clock::time_point now() const noexcept override;
  std::error_code status() const noexcept override { return region_.status(); }
  std::string description() const override { return region_.description(); }

 private:
  std::optional<client> client_;
  remote_region region_;
  io_options each_;  // transfer
  bool commits_ = false;
  bool unnamed_ = false;
};

}  // namespace ucx::detail
