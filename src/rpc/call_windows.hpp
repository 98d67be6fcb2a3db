// The caller's memory that the callee of one call may reach.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "ucx/call_writer.hpp"

namespace ucx::detail {

class context_core;
class endpoint_core;
class exposed_region;

/// How far they have come:
///
///     from    | to      | when
///     made    | granted | the call begins: the peer of its connection may reach the memory
///     granted | revoked | the call has its outcome: no access begins any more
///     revoked | closed  | no access runs any more: the memory is the caller's again
class call_windows {
 public:
  call_windows() noexcept = default;
  call_windows(call_windows&& other) noexcept = default;
  call_windows& operator=(call_windows&& other) noexcept = default;
  ~call_windows();

  /// Exposes the windows among `arguments`, as memory of `owner`; null: none may be among them.
  /// Not under the lock.
  /// Errors: those of `arguments.written()`; no_space; invalid_argument (memory at address zero);
  /// not_supported (memory of a device); those of memory_region.
  result<void> open(const std::shared_ptr<context_core>& owner, const call_writer& arguments);
  /// Returns the bytes of the arguments, with descriptors of the windows.
  /// Lifetime: those of `open()`, and this object.
  std::span<const std::byte> arguments() const noexcept { return arguments_; }
  bool empty() const noexcept { return regions_.empty(); }

  // Under the lock of the worker of the connection.
  /// All of them, or it throws and has granted none.
  void grant(endpoint_core& to);
  void revoke(endpoint_core& from) noexcept;
  /// Returns whether they are revoked, and no access runs.
  bool idle() const noexcept;
  /// REQUIRES: none runs.
  void close() noexcept;

 private:
  result<void> expose(const std::shared_ptr<context_core>& owner, const call_writer& from);

  std::vector<std::shared_ptr<exposed_region>> regions_;
  bool is_revoked_ = false;
  std::vector<std::byte> spliced_;
  std::span<const std::byte> arguments_;
};

}  // namespace ucx::detail
