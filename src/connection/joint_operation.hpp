// Several operations as one: it ends when the last of them has, with the first failure.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include "base/clock.hpp"
#include "worker/operation_group.hpp"

namespace ucx::detail {

class endpoint_core;
class worker_core;

class joint_operation final : public operation, public operation_group {
 public:
  /// Starts over one connection. `what` is what its error text begins with: a literal.
  void begin(worker_core& worker, std::shared_ptr<endpoint_core> endpoint,
             clock::time_point deadline, const char* what, operation_kind kind,
             std::uint64_t size = 0);
  /// Starts over any number of connections.
  void begin(std::shared_ptr<worker_core> worker, clock::time_point deadline, const char* what,
             operation_kind kind, std::uint64_t size = 0);
  /// Counts an operation that failed before it started.
  void note_failure(std::error_code why, std::string what, std::optional<int> ucx_status = {});
  /// Nothing more is adopted: it may end from here on.
  void all_started() noexcept;

  void give_up(errc why) noexcept override;
  void connection_failed(std::error_code) noexcept override {}  // its members are told
  std::string describe() const override;
  request_attributes attributes() const override { return {.kind = kind_, .size = size_}; }
  std::optional<int> own_ucx_status() const noexcept override { return ucx_status_; }

 protected:
  void recycle() noexcept override;

 private:
  void member_ended(operation& member, std::error_code outcome) noexcept override;
  void reset(const char* what, operation_kind kind, std::uint64_t size) noexcept;
  void end_if_over() noexcept;

  const char* what_ = "";
  operation_kind kind_ = operation_kind::none;
  std::uint64_t size_ = 0;
  std::error_code failure_;
  std::string failed_;  // which one of them
  std::optional<int> ucx_status_;
  bool starting_ = false;
};

}  // namespace ucx::detail
