// The calls of one channel over one connection.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "rpc/call_operation.hpp"
#include "rpc/call_result.hpp"
#include "ucx/call_channel.hpp"
#include "ucx/call_writer.hpp"
#include "ucx/request.hpp"

namespace ucx::detail {

class endpoint_core;

class call_channel_core {
 public:
  call_channel_core(std::shared_ptr<endpoint_core> over, call_channel_options options);

  /// Has the worker take answers.
  /// Errors: feature_disabled, not_supported.
  result<void> open();
  /// Starts a call of `wanted.called` with `arguments`. `made` gets what it brings.
  request start(wanted_call wanted, const call_writer& arguments, const call_options& options,
                std::shared_ptr<call_result>& made);
  /// Sends a call without an answer.
  result<void> post(wanted_call wanted, const call_writer& arguments);
  std::size_t under_way() const noexcept;
  /// Returns when a call that begins now ends; zero: after the worker's time.
  clock::time_point deadline_after(std::chrono::nanoseconds timeout) const noexcept;
  /// Returns the time until then, which is more than zero.
  std::chrono::nanoseconds time_until(clock::time_point deadline) const noexcept;

 private:
  const std::shared_ptr<endpoint_core> over_;
  const call_channel_options options_;
  const std::shared_ptr<std::size_t> under_way_;
};

}  // namespace ucx::detail
