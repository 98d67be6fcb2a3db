// Tells the owner of a region a number.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "region/remote/region_question.hpp"

namespace ucx::detail {

class region_notify final : public region_question {
 public:
  void begin(std::shared_ptr<remote_region_core> region, std::uint64_t value,
             clock::time_point deadline);

  void ask() override;
  void answered(const frame& answer, std::span<const std::byte> payload) override;
  void give_up_for(std::error_code why) noexcept override;
  std::string describe() const override;

 protected:
  void recycle() noexcept override;

 private:
  std::uint64_t value_ = 0;
};

}  // namespace ucx::detail
