// Which writes through one handle the peer is not known to have: what flush() waits for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/intrusive_list.hpp"

namespace ucx::detail {

class flush_operation;
struct flush_tag {};

/// Is told what has become of writes that their owner confirms. Under the worker's lock.
class write_observer {
 public:
  /// Writes are told by their numbers.
  virtual void confirmed(std::uint64_t number, std::uint64_t offset,
                         std::uint64_t length) noexcept = 0;
  /// `what` says which write it was, as far as there is memory for that.
  virtual void failed(std::uint64_t number, std::uint64_t offset, std::uint64_t length,
                      std::error_code why, const std::string& what) noexcept = 0;

 protected:
  ~write_observer() = default;
};

/// Writes are numbered in the order of their start; everything happens under the worker's lock.
class write_tracker {
 public:
  write_tracker() = default;
  write_tracker(const write_tracker&) = delete;
  write_tracker& operator=(const write_tracker&) = delete;

  /// A write starts that its owner will confirm; returns its number.
  std::uint64_t begin(std::uint64_t offset, std::uint64_t length);
  /// The owner has `bytes` more of write `number`, in order.
  void confirm(std::uint64_t number, std::uint64_t bytes);
  /// Write `number` ended without (all of) its bytes being known to be visible; `what` says which
  /// it was.
  void fail(std::uint64_t number, std::error_code why, std::string what = {});

  /// A write that only a flush of the connection confirms.
  void begin_unconfirmable(std::uint64_t offset, std::uint64_t length);
  /// Returns a mark for `flushed`: the writes so far.
  std::uint64_t unconfirmable_mark() const noexcept { return unconfirmable_writes_; }
  /// A flush of the connection that began at `mark` ended.
  void flushed(std::uint64_t mark, std::error_code outcome);

  /// This processor wrote into the peer's memory: there at once, but only as long as the peer is.
  void wrote_in_place() noexcept { in_place_ = true; }
  /// Returns whether it has, since the last call.
  bool take_in_place() noexcept { return std::exchange(in_place_, false); }

  /// Returns whether every write before number `end` (default: every write) was confirmed or
  /// failed.
  bool settled(std::uint64_t end) const noexcept;
  bool settled() const noexcept { return unsettled_ == 0; }
  bool has_unconfirmable() const noexcept { return unconfirmable_begin_.has_value(); }
  std::uint64_t last_number() const noexcept { return first_number_ + count_; }

  /// Returns the first failure of a write before number `end`, or of a flush, since the last call,
  /// and forgets those writes. REQUIRES: settled(end).
  std::error_code take_failure(std::uint64_t end);
  std::error_code take_failure() { return take_failure(last_number()); }
  /// Returns in words which write the failure was of that was taken last.
  const std::string& failed_write() const noexcept { return failed_write_; }

  std::optional<std::uint64_t> first_unconfirmed() const noexcept;
  std::uint64_t unconfirmed() const noexcept { return unconfirmed_bytes_; }

  /// Null removes it.
  void set_observer(write_observer* told) noexcept { observer_ = told; }
  // A call that blocks waits for the writes: canceling all operations leaves them alone.
  void begin_wait() noexcept { ++waits_; }
  void end_wait() noexcept { --waits_; }
  bool is_waited_for() const noexcept { return waits_ > 0; }

  /// Flushes that wait for writes to settle.
  void add(flush_operation& waiting) noexcept;
  void remove(flush_operation& waiting) noexcept;

 private:
  enum class fate : std::uint8_t { open, confirmed, failed };
  struct entry {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    std::uint64_t confirmed = 0;
    fate state = fate::open;
    std::error_code failure = {};
    std::string what = {};
  };
  entry& at(std::uint64_t number) noexcept;
  const entry& at(std::uint64_t number) const noexcept;
  /// Returns whether a write that is told of has been confirmed, or told of, in full already.
  bool forgotten(std::uint64_t number) const noexcept { return number - first_number_ >= count_; }
  void grow();
  void pop_confirmed() noexcept;
  void settle_one();

  // A ring: the writes from the first that is not confirmed.
  std::vector<entry> ring_ = std::vector<entry>(16);
  std::size_t head_ = 0;
  std::size_t count_ = 0;
  std::uint64_t first_number_ = 0;
  std::size_t unsettled_ = 0;
  std::uint64_t unconfirmed_bytes_ = 0;
  std::error_code flush_failure_;
  std::string failed_write_;
  std::optional<std::uint64_t> retry_from_;
  std::optional<std::uint64_t> unconfirmable_begin_;
  std::uint64_t unconfirmable_writes_ = 0;
  std::uint64_t unconfirmable_bytes_ = 0;
  bool in_place_ = false;
  std::size_t waits_ = 0;
  write_observer* observer_ = nullptr;
  intrusive_list<flush_operation, flush_tag> waiting_;
};

}  // namespace ucx::detail
