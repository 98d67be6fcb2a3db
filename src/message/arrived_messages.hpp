// The messages of a worker that have come, or were announced, and that have not been taken.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "message/arrived_message.hpp"
#include "message/waiting_messages.hpp"
#include "ucx/error.hpp"
#include "ucx/receive_target.hpp"
#include "wire/parcel.hpp"

namespace ucx::detail {

class endpoint_core;
class worker_core;

/// Keeps them, in the order in which they came, and what their connections have left behind.
/// Everything happens under the worker's lock.
class arrived_messages {
 public:
  explicit arrived_messages(worker_core& worker) noexcept : worker_(worker) {}
  arrived_messages(const arrived_messages&) = delete;
  arrived_messages& operator=(const arrived_messages&) = delete;

  /// Gives UCX back what is kept of it; the worker ends.
  void close() noexcept;

  /// Makes a message of a parcel; keeps the payload of UCX's if it lasts and is worth it, else a
  /// copy. Returns nothing when out of memory.
  arrived_message* keep(endpoint_core& from, const read_parcel& read,
                        std::span<const std::byte> payload, void* lasting, std::size_t units);
  /// Adds a message that no receive waits for.
  void add(arrived_message& waiting) noexcept { waiting_.add(waiting); }
  /// Returns whether the message waits here.
  static bool waits(const arrived_message& message) noexcept {
    return waiting_messages::has(message);
  }
  /// Returns the first message that waits, of `from` or of anybody; or nothing.
  arrived_message* find(const endpoint_core* from, const tag_match& wanted) const noexcept;
  /// Takes one that waits out of the list; it gets no new owner.
  void remove(arrived_message& waiting) noexcept { waiting_.remove(waiting); }
  /// Takes one that waits out of the list, and marks it as matched: for a caller that will
  /// `discard()` it.
  void take_out(arrived_message& waiting) noexcept;
  /// Marks it as matched, and tells the sender if that waits for it.
  void matched(arrived_message& found) noexcept;
  /// It is over: its room is given back, and a sender who still waits is told `why`.
  void discard(arrived_message& gone, errc why) noexcept;
  /// Its connection is gone, object and all. It may still be taken, within a bound, if those before
  /// it had `room`; returns whether.
  bool orphan(arrived_message& left, bool room) noexcept;

 private:
  arrived_message* find_of(const endpoint_core& from, const tag_match& wanted) const noexcept;
  arrived_message* take_idle();
  void free(arrived_message& gone) noexcept;

  worker_core& worker_;
  waiting_messages waiting_;
  std::vector<std::unique_ptr<arrived_message>> all_;
  std::vector<arrived_message*> idle_;
  std::size_t orphaned_units_ = 0;
};

}  // namespace ucx::detail
