// One read or write whose bytes go past the owner: the CUDA driver or an adapter moves them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>

namespace ucx::detail {

/// Between this process's memory and the owner's; at least one of the two is a device's. Under the
/// worker's lock.
class direct_move {
 public:
  /// The operation whose bytes are moved; outlives the move.
  class user {
   public:
    /// All were copied, or a copy failed, and none is under way. May drop the object.
    virtual void moved(std::error_code outcome) = 0;

   protected:
    ~user() = default;
  };

  direct_move() noexcept = default;
  direct_move(const direct_move&) = delete;
  direct_move& operator=(const direct_move&) = delete;
  /// Cancels what has not begun. The user is not called any more. REQUIRES: nothing has its bytes,
  /// or its worker ends.
  virtual ~direct_move() = default;

  /// Copies `bytes` to or from `offset` of the owner's memory. The user hears of the end later,
  /// unless this fails. Errors: no_memory, closed, busy.
  virtual std::error_code start(user& told, std::uint64_t offset, std::span<std::byte> bytes,
                                bool into_owner) = 0;
  /// Gives it up, and waits for nothing. Returns whether nothing has the bytes any more. Else the
  /// user hears of the end, as of any other.
  virtual bool let_go() noexcept { return true; }
  /// Tells the user of the end, where it has come. For those who wait and make no rounds.
  virtual void look() noexcept {}
};

}  // namespace ucx::detail
