// A read that the owner answers with the bytes, unless the driver brings them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "cuda/device_copier.hpp"
#include "region/remote/arrived_ranges.hpp"
#include "region/remote/moved_access.hpp"

namespace ucx::detail {

/// The answer's pieces are copied out of UCX's receive buffer inside its callback. So UCX never has
/// the caller's memory, unless a mover does. Sockets read straight into it, and stop at once.
/// Where it has none, giving up costs nothing.
/// Into a device they go through staging buffers.
/// There the owner is asked for a part at a time, so that no more comes than these take.
class region_read final : public moved_access {
 public:
  void begin(std::shared_ptr<remote_region_core> region, std::uint64_t offset,
             std::span<std::byte> into, clock::time_point deadline, bool verify = false);

  /// Before begin(): `into` is a device's memory, which `copier` copies to, behind `after`.
  void copy_by(std::shared_ptr<device_copier> copier,
               std::shared_ptr<const stream_mark> after) noexcept {
    copier_ = std::move(copier);
    after_ = std::move(after);
  }

  void ask() override;
  std::span<std::byte> landing_of(const frame& answer, std::size_t size) noexcept override;
  void answered(const frame& answer, std::span<const std::byte> payload) override;
  void give_up_for(std::error_code why) noexcept override;
  bool rebind(std::span<std::byte> into) noexcept override;
  std::string describe() const override;
  request_attributes attributes() const override {
    return {.kind = operation_kind::read,
            .size = length_,
            .memory = memory_of(into_.data(), copier_ != nullptr)};
  }

 protected:
  void recycle() noexcept override;

 private:
  static constexpr unsigned most_attempts = 3;
  struct range {
    std::uint64_t offset = 0;  // in the answer
    std::size_t length = 0;
  };
  /// For reads into a device. The owner is asked for `device_part` bytes at a time. The next part
  /// is asked for when at most `most_uncopied` bytes are still on their way into the device.
  static constexpr std::size_t device_part = std::size_t{16} << 20U;
  static constexpr std::size_t most_uncopied = std::size_t{8} << 20U;
  class piece_copy;
  void ask_owner();
  bool was_asked_for(const frame& answer, std::size_t size) const noexcept;
  void moved(std::error_code outcome) override;
  void check(const frame& answer);
  void arrived();
  std::error_code copy_to_device(std::byte* into, std::span<const std::byte> payload) noexcept;
  void copied(piece_copy& ended);
  void fail_when_copied(std::error_code why) noexcept;
  void ask_for_more();
  template <class Step>
  void or_give_up(Step step) noexcept;

  std::span<std::byte> into_;
  std::shared_ptr<device_copier> copier_;
  std::shared_ptr<const stream_mark> after_;
  std::vector<std::shared_ptr<piece_copy>> copies_;  // that the driver has, or will have
  std::size_t uncopied_ = 0;
  std::error_code failure_;   // reported when no copies are left
  std::size_t part_ = 0;      // where the part that was asked for last begins,
  std::size_t part_end_ = 0;  // and ends
  bool verify_ = false;
  bool unsealed_ = false;
  unsigned attempts_ = 0;
  range damaged_;  // the first piece that is not what was sent
  std::size_t received_ = 0;
  arrived_ranges pieces_;
};

}  // namespace ucx::detail
