// How many bytes of writes to a region may be unconfirmed at a time, and which writes wait.
#pragma once

#include <cstdint>

#include "base/intrusive_list.hpp"

namespace ucx::detail {

struct window_tag {};

/// The owner has room for no more than that. Writes take their turns: those that came first go
/// first. Under the worker's lock.
class write_window {
 public:
  /// A write that may have to wait.
  class waiter : public list_hook<window_tag> {
   public:
    /// There may be room again. May end the object.
    virtual void send_more() = 0;

   protected:
    ~waiter() = default;
  };

  /// 0: as many as one likes.
  explicit write_window(std::uint64_t size) noexcept : size_(size) {}
  void resize(std::uint64_t size) noexcept { size_ = size; }

  /// Returns how much of it a piece of so many bytes takes.
  std::uint64_t room_for(std::uint64_t bytes) const noexcept;
  /// Returns whether `write` may send a piece that takes `room`. If so, it has that room until
  /// `freed()`. If not, it is called when it may try again.
  bool may_send(waiter& write, std::uint64_t room) noexcept;
  void freed(std::uint64_t room) noexcept;
  void stops_waiting(waiter& write) noexcept;

 private:
  void call_waiting() noexcept;

  std::uint64_t size_;
  std::uint64_t taken_ = 0;
  bool calling_ = false;  // those that wait
  bool freed_ = false;    // since they were called last
  intrusive_list<waiter, window_tag> waiting_;
};

}  // namespace ucx::detail
