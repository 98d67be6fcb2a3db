// A write that the owner puts in place and confirms, unless the driver does it.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "connection/piece_sender.hpp"
#include "cuda/device_copier.hpp"
#include "region/remote/moved_access.hpp"
#include "region/remote/write_window.hpp"

namespace ucx::detail {

class write_tracker;

/// Goes out in pieces of a segment. Done when UCX has let go of the caller's memory. Confirmed (to
/// the tracker) when the owner has answered every piece. The request may be done long before it is
/// off the books.
///
///     from        | to       | when
///     over        | begun    | `begin()`: it is on the books of tracker and connection
///     begun       | sent     | its bytes go out, or will, as far as there is room
///     begun, sent | given_up | it has failed; UCX may still have pieces of it
///     any of them | over     | all is confirmed, or nothing will be, and UCX has none of it: it is
///                 |          | off the books
class region_write final : public moved_access, private piece_sender, private write_window::waiter {
 public:
  void begin(std::shared_ptr<remote_region_core> region, std::shared_ptr<write_tracker> tracker,
             std::uint64_t offset, std::span<const std::byte> from, clock::time_point deadline);

  /// Before begin(): `from` is a device's memory, which `copier` copies from, behind `after`: some
  /// pieces ahead of those that are sent.
  void copy_by(std::shared_ptr<device_copier> copier,
               std::shared_ptr<const stream_mark> after) noexcept {
    copier_ = std::move(copier);
    after_ = std::move(after);
  }

  void ask() override;
  /// There may be room in the region's window again. May end the object.
  void send_more() override;
  void answered(const frame& answer, std::span<const std::byte> payload) override;
  void give_up_for(std::error_code why) noexcept override;
  bool awaits_peer() const noexcept override { return true; }
  bool is_blocking() const noexcept override;
  std::string describe() const override { return "write of " + region_question::describe(); }
  request_attributes attributes() const override {
    return {.kind = operation_kind::write,
            .size = length_,
            .memory = memory_of(from_.data(), copier_ != nullptr)};
  }

 protected:
  void recycle() noexcept override;

 private:
  enum class step { begun, sent, given_up, over };
  /// Goes on to `next`, of a later row of the table, or begins again.
  void reach(step next) noexcept {
    assert(next == step::begun ? step_ == step::over : step_ < next);
    step_ = next;
  }
  void send();
  void moved(std::error_code outcome) override;
  void pieces_moved() override;
  bool may_post() noexcept override;
  wrapped_piece wrap(sent_piece& piece, bool copies) override;
  void taken_back(std::size_t size) noexcept override;
  bool may_drop_pieces() const noexcept override { return true; }
  /// A copy out of a device is gone with its piece.
  bool can_wrap_again() const noexcept override { return !copier_; }
  static constexpr std::size_t most_copied_ahead = 3;
  class piece_copy;
  std::size_t largest_piece() const noexcept;
  bool next_is_copied() noexcept;
  std::error_code copy_ahead() noexcept;
  void leave_window() noexcept;
  void linger() noexcept;

  std::shared_ptr<write_tracker> tracker_;
  std::uint64_t number_ = 0;  // the tracker's
  std::uint64_t epoch_ = 0;   // the connection's
  std::span<const std::byte> from_;
  std::shared_ptr<device_copier> copier_;
  std::shared_ptr<const stream_mark> after_;
  std::deque<std::shared_ptr<piece_copy>> ahead_;  // the next pieces, out of the device's memory
  std::uint64_t copied_to_ = 0;                    // where the last of them ends
  std::uint64_t confirmed_ = 0;
  std::uint64_t room_ = 0;  // of the region's window, taken by what is not confirmed
  step step_ = step::over;
  std::error_code failure_;
};

}  // namespace ucx::detail
