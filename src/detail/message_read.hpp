// A read that the owner answers with the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "detail/device_copier.hpp"
#include "detail/message_operation.hpp"

namespace ucx::detail {

/// The answer's pieces are copied out of UCX's receive buffer inside its callback, so that UCX
/// never has the caller's memory: giving up costs nothing.
class message_read final : public message_operation {
 public:
  void begin(std::shared_ptr<remote_region_core> region, std::uint64_t offset,
             std::span<std::byte> into, clock::time_point deadline, bool verify = false);

  /// Before begin(): `into` is a device's memory, which `copier` copies to.
  void copy_by(std::shared_ptr<device_copier> copier) noexcept { copier_ = std::move(copier); }

  void ask() override;
  void answered(const frame& answer, std::span<const std::byte> payload) override;
  void give_up_for(std::error_code why) noexcept override;
  bool rebind(std::span<std::byte> into) noexcept override;
  std::string describe() const override;

 protected:
  void recycle() noexcept override;

 private:
  static constexpr unsigned most_attempts = 3;
  struct range {
    std::uint64_t offset = 0;  // in the answer
    std::size_t length = 0;
  };
  void check(const frame& answer);
  void arrived();

  std::span<std::byte> into_;
  std::shared_ptr<device_copier> copier_;
  bool verify_ = false;
  bool unsealed_ = false;
  unsigned attempts_ = 0;
  range damaged_;  // the first piece that is not what was sent
  std::size_t received_ = 0;
};

}  // namespace ucx::detail
