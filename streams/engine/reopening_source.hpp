// A source that is opened again when its connection was lost.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "engine/byte_source.hpp"

namespace ucx::detail {

/// Stands before the source that is open at present, and passes everything on to it. Only
/// `recover()` takes another one: of the same name, where the same is behind it.
class reopening_source final : public byte_source {
 public:
  /// The property that must not have changed for the reader, or writer, to go on.
  enum class use {
    reads,     ///< The content.
    follows,   ///< The file, which may have become longer.
    edits,     ///< The memory or file, whatever is in it: the writer itself has changed it.
    appends,   ///< The file; no other writer may have added to it.
    makes_new  ///< Nothing: a file without a name goes with its connection.
  };
  /// Opens the name once. Throws why that fails.
  using opener = std::function<std::unique_ptr<byte_source>()>;

  reopening_source(std::unique_ptr<byte_source> first, std::string name, use how, opener open,
                   std::chrono::nanoseconds patience);

  std::uint64_t size() const noexcept override { return now_->size(); }
  std::uint64_t limit() const noexcept override { return now_->limit(); }
  bool can_be_measured() const noexcept override { return now_->can_be_measured(); }
  std::uint64_t measure(std::uint64_t known, std::chrono::nanoseconds wait) override;
  /// Does nothing where the connection is lost and what was written has a name: it is there.
  void commit() override;
  bool is_unnamed() const noexcept override { return now_->is_unnamed(); }
  request start_read_at(std::uint64_t offset, std::span<std::byte> into) override {
    return now_->start_read_at(offset, into);
  }
  request start_write_at(std::uint64_t offset, std::span<const std::byte> from) override;
  request start_flush() override { return now_->start_flush(); }
  std::size_t lanes() const noexcept override { return now_->lanes(); }
  bool in_place() const noexcept override { return now_->in_place(); }
  std::span<const std::byte> view(std::uint64_t offset, std::size_t length) const override {
    return now_->view(offset, length);
  }
  bool abandons_reads_at_once() const noexcept override { return now_->abandons_reads_at_once(); }
  std::optional<std::uint64_t> first_unconfirmed() const override {
    return now_->first_unconfirmed();
  }
  void forget_writes(std::uint64_t missing) override;
  std::chrono::steady_clock::time_point now() const noexcept override { return now_->now(); }
  std::error_code status() const noexcept override { return now_->status(); }
  std::string description() const override { return now_->description(); }
  content_id content() const noexcept override { return now_->content(); }

  bool recovers() const noexcept override { return true; }
  /// Tries as long as `slow_reader_timeout` says, once at least, with rests in between.
  /// Errors: content_changed; connection_reset (a file that has no name yet); what opening failed
  /// with last, at once where that can not pass.
  bool recover() override;
  void hurry() noexcept override;

 private:
  std::unique_ptr<byte_source> open_in_time();
  void require_same(const byte_source& found) const;
  /// Returns how long the file is at least, unless it was cut off.
  std::uint64_t least_size() const noexcept { return std::max(seen_size_, started_end_); }

  std::unique_ptr<byte_source> now_;
  const std::string name_;
  const use use_;
  const opener open_;
  std::chrono::nanoseconds patience_;
  std::uint64_t seen_size_;        // when it was opened, or measured, or writes were given up
  std::uint64_t started_end_ = 0;  // of the writes since then
  std::uint64_t written_end_ = 0;  // of all, also of those that failed
};

}  // namespace ucx::detail
