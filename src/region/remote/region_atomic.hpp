// An atomic access to a number of a peer's region, which the owner performs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/clock.hpp"
#include "region/exposed/atomic_execution.hpp"
#include "region/remote/region_question.hpp"

namespace ucx::detail {

/// Asked once and never again, so that it is performed once or not at all.
class region_atomic final : public region_question {
 public:
  /// `previous` gets what was there before: as many bytes as the number has, or none.
  void begin(std::shared_ptr<remote_region_core> region, std::uint64_t offset,
             const atomic_access& wanted, std::span<std::byte> previous,
             clock::time_point deadline);

  void ask() override;
  void answered(const frame& answer, std::span<const std::byte> payload) override;
  void give_up_for(std::error_code why) noexcept override;
  std::string describe() const override {
    return "atomic access to " + region_question::describe();
  }
  request_attributes attributes() const override {
    return {.kind = operation_kind::atomic, .size = length_};
  }

 protected:
  void recycle() noexcept override;

 private:
  std::span<std::byte> previous_;
  atomic_payload payload_ = {};
};

/// Writes a number of as many bytes as `into` has, if any, in this machine's order.
void store_number(std::uint64_t number, std::span<std::byte> into) noexcept;

}  // namespace ucx::detail
