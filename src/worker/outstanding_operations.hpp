// The operations of a worker that have begun and not ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <system_error>

#include "base/clock.hpp"
#include "base/intrusive_list.hpp"
#include "worker/operation.hpp"

namespace ucx::detail {

class driven_connection;

/// In the order in which they began. The end of one may end others, and begin new ones: every walk
/// bears that. Everything happens under the worker's lock.
class outstanding_operations {
 public:
  /// Numbers it, for the log.
  void add(operation& started) noexcept {
    begun_.push_back(started);
    started.set_sequence(next_sequence());
  }
  void remove(operation& ended) noexcept { begun_.remove(ended); }
  /// Returns a number for one that is over within its call.
  std::uint64_t next_sequence() noexcept { return ++last_sequence_; }

  /// Gives up those whose deadline has come.
  void expire(clock::time_point now) noexcept;
  clock::time_point first_deadline() const noexcept;

  /// Gives up users' operations over `connection`; null: all.
  void cancel(const driven_connection* connection) noexcept;
  /// Returns how many there are of these (null: over any, and over none).
  std::size_t count(const driven_connection* connection) const noexcept;
  /// Ends what is over `connection`, with `why`.
  void fail(const driven_connection& connection, std::error_code why) noexcept;

 private:
  intrusive_list<operation, outstanding_tag> begun_;
  std::uint64_t last_sequence_ = 0;
};

}  // namespace ucx::detail
