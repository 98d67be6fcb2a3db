// A write of many small pieces in one message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "base/clock.hpp"
#include "connection/write_tracker.hpp"
#include "region/remote/region_question.hpp"
#include "ucx/remote_region.hpp"

namespace ucx::detail {

/// Copies the pieces into a message when it is their turn; done from then on. Confirmed (to the
/// tracker) when the owner has answered.
class batch_write final : public region_question {
 public:
  static constexpr std::size_t most_idle = 32;  ///< Each has separate buffers, so few are kept.

  /// The pieces are within the limits of `range_list`, and none is empty.
  void begin(std::shared_ptr<remote_region_core> region, std::shared_ptr<write_tracker> tracker,
             std::span<const write_piece> pieces, std::uint64_t total, clock::time_point deadline);

  void ask() override;
  void answered(const frame& answer, std::span<const std::byte> payload) override;
  bool is_blocking() const noexcept override {
    return operation::is_blocking() || (tracker_ && tracker_->is_waited_for());
  }
  void give_up_for(std::error_code why) noexcept override;
  std::string describe() const override {
    return "write of several pieces, " + region_question::describe();
  }
  request_attributes attributes() const override {
    return {.kind = operation_kind::write, .size = length_};
  }

 protected:
  void recycle() noexcept override;

 private:
  void settle(std::error_code why);

  std::shared_ptr<write_tracker> tracker_;
  std::uint64_t number_ = 0;  // the tracker's
  std::uint64_t epoch_ = 0;   // the connection's
  bool on_the_books_ = false;
  std::vector<write_piece> pieces_;
  std::vector<std::byte> message_;
};

}  // namespace ucx::detail
