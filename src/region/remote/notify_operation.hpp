// A flush, and behind it a word to the owner: what a notification that follows the data is made of.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <system_error>

#include "base/clock.hpp"
#include "worker/operation_group.hpp"

namespace ucx::detail {

class region_notify;
class posted_operations;
class remote_region_core;
class write_tracker;

/// The owner is told when every earlier write is known to be in place, and not at all if one
/// failed.
class notify_operation final : public operation, private operation_group {
 public:
  void begin(std::shared_ptr<remote_region_core> region, std::shared_ptr<write_tracker> tracker,
             std::shared_ptr<posted_operations> posted, std::uint64_t value,
             clock::time_point deadline);

  void give_up(errc why) noexcept override;
  void connection_failed(std::error_code) noexcept override {}  // its members are told
  std::string describe() const override;
  request_attributes attributes() const override { return {.kind = operation_kind::notify}; }

 protected:
  void recycle() noexcept override;

 private:
  void member_ended(operation& member, std::error_code outcome) noexcept override;

  std::shared_ptr<remote_region_core> region_;
  std::uint64_t value_ = 0;
  bool said_ = false;
  region_notify* note_ = nullptr;  // until it is sent
  std::error_code given_up_;
  std::string failed_;
};

}  // namespace ucx::detail
