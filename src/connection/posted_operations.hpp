// Reads and writes of one handle without requests: its next flush covers them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

#include "base/intrusive_list.hpp"
#include "base/result.hpp"
#include "connection/write_epochs.hpp"
#include "connection/write_tracker.hpp"
#include "worker/operation_group.hpp"

namespace ucx::detail {

class endpoint_core;
class flush_operation;

/// Everything happens under the worker's lock.
class posted_operations final : public operation_group {
 public:
  /// So many may be in flight; a caller that posts more waits.
  static constexpr std::size_t most = 1024;

  posted_operations() { make_room(); }

  /// Takes over what was just started over `connection`.
  void post(operation& started, endpoint_core& connection);
  bool full() const noexcept { return count_ >= most; }
  bool idle() const noexcept { return count_ == 0 && failures_.empty(); }

  /// Ends an epoch: returns what a flush that starts now waits for.
  std::uint64_t close_epoch() {
    const std::uint64_t ended = epochs_.close();
    make_room();
    return ended;
  }
  bool settled(std::uint64_t epoch) const noexcept { return epochs_.settled(epoch); }
  /// Fails with the first failure up to the end of `epoch`, and forgets it and those behind it.
  result<void> take_failure(std::uint64_t epoch) noexcept;

  /// Flushes that wait for their epoch.
  void add(flush_operation& waiting) noexcept;
  void remove(flush_operation& waiting) noexcept;

 private:
  struct failed_operation {
    std::uint64_t epoch = 0;
    failure why;
  };
  void member_ended(operation& member, std::error_code outcome) noexcept override;
  /// For a failure of each epoch that may still have one: they are noted down where nothing can be
  /// thrown.
  void make_room() { failures_.reserve(failures_.size() + epochs_.size()); }

  write_epochs epochs_;
  std::size_t count_ = 0;
  std::vector<failed_operation> failures_;  // the first of each epoch
  intrusive_list<flush_operation, flush_tag> waiting_;
};

}  // namespace ucx::detail
