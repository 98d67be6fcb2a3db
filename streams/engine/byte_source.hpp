// The bytes that a stream reads and writes: at offsets, moved by requests.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>

#include "ucx/content_digest.hpp"
#include "ucx/request.hpp"

namespace ucx::detail {

/// The seam between the buffering of a stream and where its bytes are. The caller reads within
/// `size()`, or what it wrote behind it, writes within `limit()`, and keeps every span until its
/// request is done.
class byte_source {
 public:
  virtual ~byte_source() = default;

  virtual std::uint64_t size() const noexcept = 0;
  /// Returns where writes have to end: behind `size()`, where the source grows.
  virtual std::uint64_t limit() const noexcept { return size(); }
  /// Returns whether `measure()` may tell another size than `size()`.
  virtual bool can_be_measured() const noexcept { return false; }
  /// Returns how many bytes there are by now; the caller may then read up to there. Waits for up to
  /// `wait` while that is `known`. Throws where the size can not be told. REQUIRES:
  /// can_be_measured().
  virtual std::uint64_t measure(std::uint64_t known, std::chrono::nanoseconds wait) {
    static_cast<void>(wait);
    return known;
  }
  /// Has what was written appear, where it has not yet. Called when all of it is confirmed. Throws
  /// why it does not appear.
  virtual void commit() {}

  virtual request start_read_at(std::uint64_t offset, std::span<std::byte> into) = 0;
  /// Reads into memory that `keeper` keeps. The source may write there behind the end of a read
  /// that failed, and keeps it until then.
  virtual request start_read_kept(std::uint64_t offset, std::span<std::byte> into,
                                  const std::shared_ptr<const void>& keeper) {
    static_cast<void>(keeper);
    return start_read_at(offset, into);
  }
  /// Completes when `from` can be reused.
  virtual request start_write_at(std::uint64_t offset, std::span<const std::byte> from) = 0;
  /// Completes when every earlier write is visible, and reports the first of them that is not.
  virtual request start_flush() = 0;

  /// Returns whether the bytes lie in this process: then `view` gives them, and nothing is read.
  virtual bool in_place() const noexcept { return false; }
  /// Returns bytes where they lie, good for as long as the source. Throws what a read would.
  /// REQUIRES: in_place().
  virtual std::span<const std::byte> view(std::uint64_t offset, std::size_t length) const {
    static_cast<void>(offset);
    static_cast<void>(length);
    return {};
  }

  /// Returns whether what is written has no name before `commit()`, and goes with its connection.
  virtual bool is_unnamed() const noexcept { return false; }

  /// Returns what was there when it was opened, or measured.
  virtual content_id content() const noexcept { return {}; }
  /// Returns whether `recover()` may do something.
  virtual bool recovers() const noexcept { return false; }
  /// Has a source that is lost (`status()`) again, at any price of time that it was given. Returns
  /// false where the source is not lost. After true the caller may begin anew: nothing that was
  /// started, or viewed, is of use. Throws why it can not be had.
  /// REQUIRES: nothing that was written is unconfirmed.
  virtual bool recover() { return false; }
  /// From here on `recover()` tries for a moment only: the program did not ask for what is done
  /// now.
  virtual void hurry() noexcept {}

  /// Returns how many connections its reads take.
  virtual std::size_t lanes() const noexcept { return 1; }

  /// Returns whether an unfinished read can be destroyed without waiting, and without harm to
  /// others.
  virtual bool abandons_reads_at_once() const noexcept = 0;

  /// Returns the offset of the first byte, in the order of the writes, that is not known to be
  /// visible; nothing when all are.
  virtual std::optional<std::uint64_t> first_unconfirmed() const = 0;
  /// Lets later flushes report on later writes only: of those so far, what lies at `missing` and
  /// behind it may not be there.
  virtual void forget_writes(std::uint64_t missing) = 0;

  /// Returns the time, by the clock of the deadlines of transfers.
  virtual std::chrono::steady_clock::time_point now() const noexcept = 0;

  /// Returns no error while transfers can succeed.
  virtual std::error_code status() const noexcept = 0;
  virtual std::string description() const = 0;
};

}  // namespace ucx::detail
