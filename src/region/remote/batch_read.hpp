// A read of many small pieces, which the owner answers with all of their bytes in a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "base/clock.hpp"
#include "region/remote/arrived_ranges.hpp"
#include "region/remote/region_question.hpp"
#include "ucx/remote_region.hpp"

namespace ucx::detail {

/// Bytes are copied to where they belong inside UCX's callback: as in `region_read`, giving up
/// costs nothing.
class batch_read final : public region_question {
 public:
  static constexpr std::size_t most_idle = 32;  ///< Each has separate buffers, so few are kept.

  /// The pieces are within the limits of `range_list`, and none is empty.
  void begin(std::shared_ptr<remote_region_core> region, std::span<const read_piece> pieces,
             std::uint64_t total, clock::time_point deadline);

  void ask() override;
  void answered(const frame& answer, std::span<const std::byte> payload) override;
  void give_up_for(std::error_code why) noexcept override;
  std::string describe() const override {
    return "read of several pieces, " + region_question::describe();
  }
  request_attributes attributes() const override {
    return {.kind = operation_kind::read, .size = length_};
  }

 protected:
  void recycle() noexcept override;

 private:
  struct place {
    std::uint64_t begin = 0;  // in the answer
    std::span<std::byte> into;
  };
  void scatter(std::uint64_t at, std::span<const std::byte> bytes) noexcept;

  std::vector<place> places_;
  std::vector<std::byte> list_;
  std::uint64_t received_ = 0;
  arrived_ranges pieces_;
};

}  // namespace ucx::detail
